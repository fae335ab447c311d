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

package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/test/await"
)

// The representations that clients ask for.
const (
	JSON         = "application/json"
	YAML         = "application/yaml"
	CBOR         = "application/cbor"
	Protobuf     = "application/vnd.kubernetes.protobuf"
	Table        = "application/json;as=Table;g=meta.k8s.io;v=v1"
	Metadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	MetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Client sends requests to one server as one user.
type Client struct {
	http *http.Client
	host string
}

// NewClient returns a client whose requests last as long as their contexts.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	c := &Client{host: strings.TrimSuffix(host.String(), "/")}
	c.http, err = rest.HTTPClientFor(config)
	return c, err
}

// Get asks for a path, and returns whatever the answer is.
func (c *Client) Get(t *testing.T, path, accept string) Answer {
	t.Helper()
	return c.Send(t, http.MethodGet, path, Accepting(accept), "")
}

// Accepting is the header of a request for a representation.
func Accepting(accept string) http.Header { return http.Header{"Accept": {accept}} }

// Send sends a request, and returns whatever the answer is.
func (c *Client) Send(t *testing.T, method, path string, header http.Header, body string) Answer {
	t.Helper()
	a, err := c.Try(t.Context(), method, path, header, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Try sends a request that may not be answered.
func (c *Client) Try(ctx context.Context, method, path string, header http.Header, body string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Patience)
	defer cancel()
	began := time.Now()
	response, err := c.Open(ctx, method, path, header, body)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: content, Took: time.Since(began)}, err
}

// Open sends a request and leaves the body of the answer to be read.
func (c *Client) Open(ctx context.Context, method, path string, header http.Header, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	return c.http.Do(request)
}
