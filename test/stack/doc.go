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

// Package stack gives a test binary a development stack of its own: a real control plane and real CDI, and the server
// under test behind a real APIService. It builds what is missing, starts it in a temporary directory and takes all of it
// away again. One stack serves all tests of a binary, so each test keeps to names or a namespace of its own.
package stack
