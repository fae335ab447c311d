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
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"
)

// serve puts the handler in front of an API server and returns its address.
func serve(t *testing.T, api http.HandlerFunc) string {
	t.Helper()
	backend := httptest.NewTLSServer(api)
	t.Cleanup(backend.Close)
	return serveFor(t, &rest.Config{
		Host:        backend.URL,
		BearerToken: "tenant",
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw}),
		},
	})
}

func serveFor(t *testing.T, config *rest.Config) string {
	t.Helper()
	page := fstest.MapFS{"index.html": {Data: []byte("the page")}}
	handler, err := newHandler(config, "tenant-a", http.FS(page))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func getText(t *testing.T, url string) (int, string) {
	t.Helper()
	response := get(t, url)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

// Guards: the paths that are passed on, as the user of the kubeconfig.
func TestOnlyTheAPIIsPassedOn(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s as %s", r.URL, r.Header.Get("Authorization"))
	})
	tests := map[string]struct {
		path string
		code int
		body string
	}{
		"the page":           {"/", http.StatusOK, "the page"},
		"its configuration":  {"/config.json", http.StatusOK, `{"namespace":"tenant-a"}`},
		"the core group":     {"/api/v1", http.StatusOK, "/api/v1 as Bearer tenant"},
		"the other groups":   {"/apis/a/v1/things?watch=1", http.StatusOK, "/apis/a/v1/things?watch=1 as Bearer tenant"},
		"nothing besides it": {"/metrics", http.StatusNotFound, "404 page not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if code, body := getText(t, url+test.path); code != test.code || body != test.body {
				t.Errorf("got %d %q, want %d %q", code, body, test.code, test.body)
			}
		})
	}
}

// Guards: that the proxy flushes what it passes on.
func TestAnEventIsPassedOnWhileTheWatchGoesOn(t *testing.T) {
	read := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "an event")
		w.(http.Flusher).Flush()
		select {
		case <-read:
		case <-r.Context().Done():
		}
	})
	line, err := bufio.NewReader(get(t, url+"/apis/a/v1/things?watch=1").Body).ReadString('\n')
	close(read)
	if line != "an event\n" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
}

// Guards: ErrorHandler, whose text the page shows.
func TestAnAPIServerThatIsDownIsReported(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	url := serveFor(t, &rest.Config{Host: down.URL})
	code, body := getText(t, url+"/apis")
	if code != http.StatusBadGateway || !strings.Contains(body, "the API server does not answer") {
		t.Errorf("got %d %q", code, body)
	}
}
