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

package apiserver

import (
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// The token of the account goes to whoever answers at the address.
func TestAReplicaIsTrustedAsTheAPIServiceSays(t *testing.T) {
	service := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "v1alpha1.images.cozystack.io"},
		"spec": map[string]any{
			"caBundle": base64.StdEncoding.EncodeToString([]byte("authorities")),
			"service":  map[string]any{"namespace": "cozy-system", "name": "workerimage-apiserver"},
		},
	}}
	account := &rest.Config{
		Host: "https://10.0.0.1", BearerTokenFile: "token", TLSClientConfig: rest.TLSClientConfig{CAFile: "cluster.crt", CAData: []byte("cluster")},
	}
	peer, err := peerConfig(account, service, "10.1.0.7:6443")
	if err != nil {
		t.Fatal(err)
	}
	if peer.Host != "https://10.1.0.7:6443" || peer.BearerTokenFile != "token" {
		t.Errorf("connects to %s with the token in %q", peer.Host, peer.BearerTokenFile)
	}
	if tls := peer.TLSClientConfig; string(tls.CAData) != "authorities" || tls.CAFile != "" || tls.ServerName != "workerimage-apiserver.cozy-system.svc" {
		t.Errorf("trusts %q and %q for %q", tls.CAData, tls.CAFile, tls.ServerName)
	}
	if account.Host != "https://10.0.0.1" || string(account.CAData) != "cluster" {
		t.Error("the account was modified")
	}
}

func TestWithoutAuthoritiesNoReplicaIsTrusted(t *testing.T) {
	for name, spec := range map[string]map[string]any{
		"none are there":               {},
		"what is there is no base64":   {"caBundle": "!"},
		"verification is switched off": {"insecureSkipTLSVerify": true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := peerConfig(&rest.Config{}, &unstructured.Unstructured{Object: map[string]any{"spec": spec}}, "10.1.0.7:6443"); err == nil {
				t.Error("the replica is trusted")
			}
		})
	}
}
