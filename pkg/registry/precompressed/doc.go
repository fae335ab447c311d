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

// Package precompressed answers requests with bodies that were compressed before.
//
// The encoders of k8s.io/apiserver compress what they write, each time, and have no way to be handed what is
// compressed already. So an encoding is handed over twice: Write writes it as it is, so that whoever else reads
// what an encoder writes gets that, and offers the compressed form to the handler that was put around the API,
// which sends the one in place of the other. Where they miss each other the client is sent what upstream makes
// of it.
//
// The package knows HTTP, and nothing of what is served.
package precompressed
