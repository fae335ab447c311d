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

package certs

import (
	"bytes"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret.
const (
	servingCertKey = corev1.TLSCertKey
	servingKeyKey  = corev1.TLSPrivateKeyKey
	nextCertKey    = "next.crt"
	nextKeyKey     = "next.key"
	// BundleKey is where clients that know the Secret find whom to trust.
	BundleKey = "ca.crt"
)

// stateOf reads what servers share. There may be nothing yet.
func stateOf(secret *corev1.Secret) State {
	return State{
		Serving: Pair{Cert: secret.Data[servingCertKey], Key: secret.Data[servingKeyKey]},
		Next:    Pair{Cert: secret.Data[nextCertKey], Key: secret.Data[nextKeyKey]},
		Bundle:  secret.Data[BundleKey],
	}
}

// data is the content of the Secret.
func (s State) data() map[string][]byte {
	data := map[string][]byte{
		servingCertKey: s.Serving.Cert,
		servingKeyKey:  s.Serving.Key,
		nextCertKey:    s.Next.Cert,
		nextKeyKey:     s.Next.Key,
		BundleKey:      s.Bundle,
	}
	maps.DeleteFunc(data, func(_ string, value []byte) bool { return len(value) == 0 })
	return data
}

// isIn is true if the Secret holds this state and nothing else.
func (s State) isIn(secret *corev1.Secret) bool {
	return maps.EqualFunc(s.data(), secret.Data, bytes.Equal)
}
