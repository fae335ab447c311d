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

package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
)

func TestPoliciesThatTheClusterDoesNotServeAreNotWaitedFor(t *testing.T) {
	for _, test := range []struct {
		name     string
		status   int
		served   []string
		disabled bool
		refused  bool
	}{
		{"a cluster that serves mutating policies", http.StatusOK, []string{"validatingadmissionpolicies", "mutatingadmissionpolicies"}, false, false},
		{"a cluster that serves validating policies alone", http.StatusOK, []string{"validatingadmissionpolicies"}, true, false},
		{"a cluster without the group", http.StatusNotFound, nil, true, false},
		{"a cluster that does not tell", http.StatusForbidden, nil, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := genericoptions.NewAdmissionOptions()
			err := disableUnservedPlugins(o, clusterWith(t, test.status, test.served))
			if (err != nil) != test.refused {
				t.Errorf("got error %v", err)
			}
			if got := slices.Contains(o.DisablePlugins, mutatingadmissionpolicy.PluginName); got != test.disabled {
				t.Errorf("it is turned off: %v", got)
			}
		})
	}
}

// clusterWith is the access to a cluster that serves some resources of the group of policies.
func clusterWith(t *testing.T, status int, served []string) *genericapiserver.RecommendedConfig {
	t.Helper()
	list := metav1.APIResourceList{GroupVersion: admissionregistrationv1.SchemeGroupVersion.String()}
	for _, name := range served {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/"+list.GroupVersion {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(cluster.Close)
	return &genericapiserver.RecommendedConfig{ClientConfig: &rest.Config{Host: cluster.URL}}
}
