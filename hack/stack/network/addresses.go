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

package network

import "strings"

// An EndpointSlice takes no loopback address, and a process that is not privileged has no other. So a pod is known in the
// cluster by an address that nothing listens on, and its process has the loopback address that ends in the same.
const (
	podRange = "10.77."
	loopback = "127.77."
)

// PodAddress is what the cluster knows a process by that listens on a loopback address.
func PodAddress(local string) string {
	if rest, found := strings.CutPrefix(local, loopback); found {
		return podRange + rest
	}
	return local
}

// localAddress is where the process of a pod listens. Other addresses are what they are.
func localAddress(address string) string {
	if rest, found := strings.CutPrefix(address, podRange); found {
		return loopback + rest
	}
	return address
}
