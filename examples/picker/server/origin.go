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
	"net"
	"net/http"
)

// sameOrigin refuses what another page makes a browser ask. Only this machine can connect, but a browser on it does so for
// any page on the internet, and everything that is passed on is done as the user of the kubeconfig.
//
//   - A page of another origin can send requests, though it cannot read the answers. Browsers put the origin on each that
//     could change anything, and on each that opens a WebSocket, which would let it read too.
//   - A page whose own name was made to resolve to the loopback address is of the same origin for the browser. It gives
//     itself away by that name in Host.
//
// A page that shows this one in a frame could have the user click in it unawares.
func sameOrigin(address string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	hosts := map[string]bool{address: true, net.JoinHostPort("localhost", port): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts[r.Host] {
			http.Error(w, "unknown host", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			http.Error(w, "another origin", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}
