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

// Package conformance holds served resources against the contract that clients of a Kubernetes API rely on: the page "API
// concepts" of Kubernetes' documentation, and where that is silent, what kube-apiserver does for a kind of its own. Each
// clause is a test that is named after it, and knows requests and answers only: not the server, not the kinds, not how
// the resources come about. The same clauses can so be put to a built-in kind, and one that it breaks is wrong.
//
// The suite takes the cluster as it is. Where a clause needs a change, a Driver makes it, which by default labels an
// object and takes the label away again. What cannot be put to the test is said, and why.
package conformance
