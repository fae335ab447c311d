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

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Guards: both refusals of sameOrigin.
func TestSameOrigin(t *testing.T) {
	const address = "127.0.0.1:8000"
	tests := map[string]struct {
		host, origin string
		want         int
	}{
		"the user opens the page":                           {address, "", http.StatusOK},
		"the user opens the page by the name of the host":   {"localhost:8000", "", http.StatusOK},
		"the page asks":                                     {address, "http://" + address, http.StatusOK},
		"another page asks":                                 {address, "http://example.org", http.StatusForbidden},
		"a page without an origin asks":                     {address, "null", http.StatusForbidden},
		"a page of another port of this machine asks":       {address, "http://127.0.0.1:8001", http.StatusForbidden},
		"the page by its other name asks":                   {address, "http://localhost:8000", http.StatusForbidden},
		"a name was made to resolve to this machine":        {"example.org:8000", "", http.StatusForbidden},
		"a page of such a name asks":                        {"example.org:8000", "http://example.org:8000", http.StatusForbidden},
		"the host has another port":                         {"localhost:80", "", http.StatusForbidden},
		"no host is named":                                  {"", "", http.StatusForbidden},
		"an origin that begins like the page's, but is not": {address, "http://" + address + ".example.org", http.StatusForbidden},
	}
	handler := sameOrigin(address, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/apis", nil)
			r.Host = test.host
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("got %d, want %d", w.Code, test.want)
			}
		})
	}
}
