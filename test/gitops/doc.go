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

// Package gitops proves what docs/consumers says of Flux and Argo CD, with the libraries that these are made of: Flux's
// kstatus, its applier and its health expressions, Argo CD's sync engine, its diff and its Lua interpreter. The manifests
// and the script are those of the pages. It is a module of its own, since these libraries bring along more than the
// server needs.
package gitops
