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

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
)

// The representations that clients ask for.
const (
	asJSON         = "application/json"
	asYAML         = "application/yaml"
	asCBOR         = "application/cbor"
	asProtobuf     = "application/vnd.kubernetes.protobuf"
	asTable        = "application/json;as=Table;g=meta.k8s.io;v=v1"
	asMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// client sends requests as they are, and tries nothing again.
type client struct {
	http *http.Client
	host string
}

func newClient(config *rest.Config) (*client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	c := &client{host: host.String()}
	c.http, err = rest.HTTPClientFor(config)
	return c, err
}

// answer is a response as it comes over the wire.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (c *client) get(t *testing.T, path, accept string) answer {
	t.Helper()
	return c.send(t, http.MethodGet, path, http.Header{"Accept": {accept}}, "")
}

func (c *client) send(t *testing.T, method, path string, header http.Header, body string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response, err := c.do(ctx, method, path, header, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: content}
}

func (c *client) do(ctx context.Context, method, path string, header http.Header, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if request.Header.Get("Accept-Encoding") == "" {
		request.Header.Set("Accept-Encoding", "identity")
	}
	return c.http.Do(request)
}

// decode reads an answer that must be a good one.
func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("the answer is %d: %.500s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatalf("decode %.500s: %v", a.body, err)
	}
}

// list is a list of any kind.
type list = unstructured.UnstructuredList

func (a answer) list(t *testing.T) *list {
	t.Helper()
	var l *list
	a.decode(t, &l)
	return l
}

func (a answer) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	a.decode(t, &o)
	return &o
}

// refused returns the Status of an answer that must be a refusal, with this code and, if one is given, this reason.
func (a answer) refused(t *testing.T, code int, reason metav1.StatusReason) metav1.Status {
	t.Helper()
	var status metav1.Status
	if a.status != code {
		t.Fatalf("the answer is %d, not %d: %.500s", a.status, code, a.body)
	}
	if err := json.Unmarshal(a.body, &status); err != nil {
		t.Fatalf("decode %.500s: %v", a.body, err)
	}
	checkStatus(t, status, code, reason)
	return status
}

func checkStatus(t *testing.T, status metav1.Status, code int, reason metav1.StatusReason) {
	t.Helper()
	if status.Kind != "Status" || status.Status != metav1.StatusFailure || int(status.Code) != code || status.Message == "" {
		t.Errorf("not a Status of code %d that says something: %+v", code, status)
	}
	if reason != "" && status.Reason != reason {
		t.Errorf("the reason is %s, not %s: %s", status.Reason, reason, status.Message)
	}
}

// older tells whether a version comes before another.
func older(t *testing.T, a, b string) bool {
	t.Helper()
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		t.Fatalf("compare %q with %q: %v", a, b, err)
	}
	return order < 0
}
