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

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// endpoints returns the addresses that connections to a port of a Service are spread over: those of endpoints that are
// ready, and if none is, of those that leave and still serve.
func endpoints(service *corev1.Service, port int32, slices []*discoveryv1.EndpointSlice) []string {
	name, found := portName(service, port)
	if !found {
		return nil
	}
	var ready, leaving []string
	for _, slice := range slices {
		target, found := targetPort(slice, name)
		if !found {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			address := net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(target)))
			switch conditions := endpoint.Conditions; {
			case ptr.Deref(conditions.Ready, true):
				ready = append(ready, address)
			case ptr.Deref(conditions.Serving, true) && ptr.Deref(conditions.Terminating, false):
				leaving = append(leaving, address)
			}
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return leaving
}

func portName(service *corev1.Service, port int32) (name string, found bool) {
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return p.Name, true
		}
	}
	return "", false
}

func targetPort(slice *discoveryv1.EndpointSlice, name string) (port int32, found bool) {
	for _, p := range slice.Ports {
		if ptr.Deref(p.Name, "") == name && p.Port != nil {
			return *p.Port, true
		}
	}
	return 0, false
}
