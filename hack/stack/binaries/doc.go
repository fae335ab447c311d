/*
Copyright The Cozystack Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package binaries provides the programs a development stack runs. Each is built once from the pinned modules beside
// this package, or found where controller-runtime's test environment keeps prebuilt ones, and kept in a cache outside
// the tree under a name that holds everything the result depends on. It knows how to build, and nothing of how to run.
package binaries
