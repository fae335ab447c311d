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

// Package cluster starts a development stack: a real etcd, kube-apiserver and kube-controller-manager, real CDI with its
// webhooks, a simulated node, and, if asked, the server under development behind a real APIService. Everything it keeps is
// in one directory, everything it starts ends with it, and several stacks run side by side. It is given programs and
// does not know how they were built.
package cluster
