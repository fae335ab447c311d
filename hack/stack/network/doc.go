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

// Package network stands in for the network between a control plane and the pods that run as processes beside it. It is a
// proxy that kube-apiserver dials everything in the cluster through: a connection to the address of a Service goes to one
// of the endpoints that it has now, as kube-proxy would have it, one to the address of a pod to where its process listens,
// and any other to where it is for. It reads Services and EndpointSlices, and does not know who else does.
package network
