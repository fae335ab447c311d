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
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/cozystack/workerimage-apiserver/hack/stack/pki"
)

func TestOneWhoAsksForAPodReachesItsProcess(t *testing.T) {
	n := listen(t)
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.77.255.254:0")
	if err != nil {
		t.Fatal(err)
	}
	backend.Listener = listener
	backend.StartTLS()
	defer backend.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, n, "https://"+net.JoinHostPort(PodAddress("127.77.255.254"), port)); got != "hello" {
		t.Errorf("got %q", got)
	}
	if got := get(t, n, backend.URL); got != "hello" {
		t.Errorf("at its own address: %q", got)
	}
}

func TestConnectionsToAServiceAreSpreadUnlessItHasAffinity(t *testing.T) {
	slice := newSlice(ready("10.77.0.2"), ready("10.77.0.3"))
	for affinity, want := range map[corev1.ServiceAffinity][]string{
		corev1.ServiceAffinityNone:     {"127.77.0.2:6443", "127.77.0.3:6443", "127.77.0.2:6443"},
		corev1.ServiceAffinityClientIP: {"127.77.0.2:6443", "127.77.0.2:6443", "127.77.0.2:6443"},
	} {
		n := knowing(t, newService(affinity), slice)
		var got []string
		for range want {
			got = append(got, resolve(t, n, "10.0.0.7:443"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", affinity, diff)
		}
	}
}

func TestAffinityEndsWithTheEndpoint(t *testing.T) {
	service := newService(corev1.ServiceAffinityClientIP)
	slice := newSlice(ready("10.77.0.2"), ready("10.77.0.3"))
	n := knowing(t, service, slice)
	resolve(t, n, "10.0.0.7:443")
	slice.Endpoints[0] = leaving("10.77.0.2", true)
	if got := resolve(t, n, "10.0.0.7:443"); got != "127.77.0.3:6443" {
		t.Errorf("it goes to %s", got)
	}
}

func TestAServiceWithoutEndpointsIsNotReached(t *testing.T) {
	n := knowing(t, newService(""), newSlice())
	if got, err := n.resolve("10.0.0.7:443"); err == nil {
		t.Errorf("it goes to %s", got)
	}
}

func listen(t *testing.T) *Network {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue("network", nil)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")
	for path, content := range map[string][]byte{cert: pair.Cert, key: pair.Key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, err := Listen(context.WithoutCancel(t.Context()), "127.0.0.1:0", cert, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// get asks through the proxy. What is kept of the connection does not keep the proxy from ending.
func get(t *testing.T, n *Network, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(n.URL()),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var said strings.Builder
	if _, err := io.Copy(&said, response.Body); err != nil {
		t.Fatal(err)
	}
	return said.String()
}

// knowing returns a Network that knows these objects and is not listening.
func knowing(t *testing.T, service *corev1.Service, slices ...any) *Network {
	t.Helper()
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	services, endpointSlices := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	if err := services.Add(service); err != nil {
		t.Fatal(err)
	}
	for _, slice := range slices {
		if err := endpointSlices.Add(slice); err != nil {
			t.Fatal(err)
		}
	}
	return &Network{
		services: corelisters.NewServiceLister(services),
		slices:   discoverylisters.NewEndpointSliceLister(endpointSlices),
		next:     map[types.UID]int{},
		chosen:   map[types.UID]string{},
	}
}

func resolve(t *testing.T, n *Network, address string) string {
	t.Helper()
	got, err := n.resolve(address)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
