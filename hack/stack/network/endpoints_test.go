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
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestAConnectionGoesWhereAServiceHasEndpoints(t *testing.T) {
	for _, row := range []struct {
		name      string
		port      int32
		endpoints []discoveryv1.Endpoint
		want      []string
	}{
		{"to those that are ready", 443, []discoveryv1.Endpoint{ready("10.77.0.2"), ready("10.77.0.3")}, []string{"10.77.0.2:6443", "10.77.0.3:6443"}},
		{"to none that leaves while another is ready", 443, []discoveryv1.Endpoint{leaving("10.77.0.2", true), ready("10.77.0.3")}, []string{"10.77.0.3:6443"}},
		{"to those that leave and still serve when there is no other", 443, []discoveryv1.Endpoint{leaving("10.77.0.2", true), leaving("10.77.0.3", false)}, []string{"10.77.0.2:6443"}},
		{"to none that has not begun to serve", 443, []discoveryv1.Endpoint{unready("10.77.0.2")}, nil},
		{"to nobody at a port that the Service does not have", 444, []discoveryv1.Endpoint{ready("10.77.0.2")}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			slice := newSlice(row.endpoints...)
			other := newSlice(ready("10.77.0.9"))
			other.Ports[0].Name = ptr.To("metrics")
			got := endpoints(newService(""), row.port, []*discoveryv1.EndpointSlice{slice, other})
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func newService(affinity corev1.ServiceAffinity) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "server", UID: "1"},
		Spec: corev1.ServiceSpec{
			ClusterIP:       "10.0.0.7",
			SessionAffinity: affinity,
			Ports:           []corev1.ServicePort{{Name: "https", Port: 443}},
		},
	}
}

func newSlice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "server-1", Labels: map[string]string{discoveryv1.LabelServiceName: "server"}},
		Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}},
		Endpoints:  endpoints,
	}
}

func ready(address string) discoveryv1.Endpoint   { return endpoint(address, true, true, false) }
func unready(address string) discoveryv1.Endpoint { return endpoint(address, false, false, false) }

func leaving(address string, serves bool) discoveryv1.Endpoint {
	return endpoint(address, false, serves, true)
}

func endpoint(address string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
}
