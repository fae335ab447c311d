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
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Guards: that lists which are joined of what was encoded before are what the encoder writes in one piece, which it does
// where it indents.
func TestAListIsTheSameHoweverItIsEncoded(t *testing.T) {
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprintf("talos-worker-aaa-v1.13.%d", i)] = "Pending"
	}
	f := start(t, many)
	for i, phase := range []string{"Succeeded", "ImportInProgress", "Failed"} {
		changed := fmt.Sprintf("talos-worker-aaa-v1.13.%d", i)
		many[changed] = phase
		f.write(t, many)
		var got encodedList
		eventually(t, "the change is served, and nothing else changes", func(ctx context.Context) (bool, error) {
			image, err := f.client.ImagesV1alpha1().WorkerImages().Get(ctx, changed, metav1.GetOptions{})
			if err != nil || image.Status.DataVolume.Phase != phase {
				return false, err
			}
			got = f.encoded(t)
			return bytes.Equal(got.json, f.body(t, resource, "application/json")), nil
		})
		got.check(t)
	}
}

// encodedList is one list in several encodings.
type encodedList struct{ json, gzip, indented, yaml []byte }

func (f *fixture) encoded(t *testing.T) encodedList {
	t.Helper()
	return encodedList{
		json:     f.body(t, resource, "application/json"),
		gzip:     f.unpacked(t, resource),
		indented: f.body(t, resource+"?pretty=1", "application/json"),
		yaml:     f.body(t, resource, "application/yaml"),
	}
}

func (l encodedList) check(t *testing.T) {
	t.Helper()
	var want bytes.Buffer
	if err := json.Compact(&want, l.indented); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if !bytes.Equal(l.json, want.Bytes()) {
		t.Errorf("in JSON it is\n%s, not\n%s", l.json, want.Bytes())
	}
	if !bytes.Equal(l.gzip, want.Bytes()) {
		t.Errorf("compressed it is\n%s, not\n%s", l.gzip, want.Bytes())
	}
	fromYAML, err := yaml.YAMLToJSON(l.yaml)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := yaml.YAMLToJSON(want.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fromYAML, fromJSON) {
		t.Errorf("in YAML it is\n%s, not\n%s", fromYAML, fromJSON)
	}
}

func (f *fixture) body(t *testing.T, path, accept string) []byte {
	t.Helper()
	response, body := f.request(t, path, http.Header{"Accept": {accept}, "Accept-Encoding": {"identity"}})
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), accept) {
		t.Fatalf("%s: %d %v %s", path, response.StatusCode, response.Header, body)
	}
	return body
}

func (f *fixture) unpacked(t *testing.T, path string) []byte {
	t.Helper()
	response, body := f.request(t, path, http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}})
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%s: %d %v", path, response.StatusCode, response.Header)
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
