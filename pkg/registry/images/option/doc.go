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

// Package option serves the resource options, which nobody writes: three Options that read the same in every
// namespace. The log holds them once, in the namespace of the goldens; what is handed out for another
// namespace is a copy that says so. The package knows requests and objects, and nothing of what is offered.
package option
