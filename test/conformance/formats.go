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
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// formatClauses are about the representations of objects.
func formatClauses() []clause {
	some := []need{objects(1)}
	return []clause{
		{"a get, list or watch can be a Table", some, tables},
		{"a Table holds of its objects what includeObject says", some, tablesInclude},
		{"an includeObject that is none is 400", some, garbageInclude},
		{"a get, list or watch can be metadata only", some, metadataOnly},
		{"metadata of the wrong number is 406", some, metadataOfTheWrongNumber},
		{"who prefers protobuf and takes JSON is answered", some, protobufFirst},
		{"who takes only protobuf gets 406 of a kind without it", some, protobufOnly},
		{"YAML says what JSON says", some, yamlIsJSON},
		{"who takes only CBOR gets CBOR or 406, and who prefers it is answered", some, cborOrNot},
		{"who takes nothing that there is gets 406", some, nothingAcceptable},
		{"who takes anything gets JSON", some, anythingIsJSON},
		{"who takes gzip is told the same", some, gzipIsTheSame},
	}
}

// checkTable decodes a Table of a number of rows, with or without a header.
func (s *subject) checkTable(t *testing.T, body []byte, rows int, header bool) *metav1.Table {
	t.Helper()
	table := &metav1.Table{}
	if err := json.Unmarshal(body, table); err != nil {
		t.Fatalf("decode %.300s: %v", body, err)
	}
	if table.Kind != "Table" || table.APIVersion != metav1.SchemeGroupVersion.String() || len(table.Rows) != rows {
		t.Fatalf("%s of %s with %d rows, not %d", table.Kind, table.APIVersion, len(table.Rows), rows)
	}
	if (len(table.ColumnDefinitions) > 0) != header {
		t.Errorf("%d columns, with a header: %v", len(table.ColumnDefinitions), header)
	}
	for _, row := range table.Rows {
		if header && len(row.Cells) != len(table.ColumnDefinitions) {
			t.Errorf("%d cells in %d columns", len(row.Cells), len(table.ColumnDefinitions))
		}
	}
	return table
}

// rowName is the name of the object of a row.
func rowName(t *testing.T, table *metav1.Table, row int) string {
	t.Helper()
	return rowObject(t, table, row).GetName()
}

func rowObject(t *testing.T, table *metav1.Table, row int) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := json.Unmarshal(table.Rows[row].Object.Raw, &o); err != nil {
		t.Fatalf("decode the object of a row, %.300s: %v", table.Rows[row].Object.Raw, err)
	}
	return &o
}

func tables(t *testing.T, s *subject) {
	l := s.list(t, "")
	name := l.Items[0].GetName()
	a := s.client.Get(t, s.path, wire.Table)
	table := s.checkTable(t, a.Body, len(l.Items), true)
	if older(t, table.ResourceVersion, l.GetResourceVersion()) {
		t.Errorf("the Table is of version %s, and the list was at %s", table.ResourceVersion, l.GetResourceVersion())
	}
	for i := range l.Items {
		if got := rowName(t, table, i); got != l.Items[i].GetName() {
			t.Errorf("row %d is of %s, not %s", i, got, l.Items[i].GetName())
		}
	}
	s.checkTable(t, s.client.Get(t, s.object(name), wire.Table).Body, 1, true)
	w := s.watchAs(t, streamed, wire.Table)
	for i := range l.Items {
		e := w.Next(t)
		if table := s.checkTable(t, e.Raw, 1, i == 0); e.Type != watch.Added || rowName(t, table, 0) != l.Items[i].GetName() {
			t.Errorf("event %d is %s of %s", i, e.Type, rowName(t, table, 0))
		}
	}
	end := w.Next(t)
	table = s.checkTable(t, end.Raw, 1, false)
	if end.Type != watch.Bookmark || rowObject(t, table, 0).GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("it ends with %s %s", end.Type, end.Raw)
	}
}

func tablesInclude(t *testing.T, s *subject) {
	name := s.first(t)
	for include, kind := range map[string]string{"None": "", "Metadata": "PartialObjectMetadata", "Object": s.Kind, "": "PartialObjectMetadata"} {
		t.Run("includeObject="+include, func(t *testing.T) {
			query := "?includeObject=" + include + "&fieldSelector=metadata.name=" + name
			l := s.checkTable(t, s.client.Get(t, s.path+query, wire.Table).Body, 1, true)
			o := s.checkTable(t, s.client.Get(t, s.object(name)+query, wire.Table).Body, 1, true)
			w := s.checkTable(t, s.watchAs(t, query[1:], wire.Table).Next(t).Raw, 1, true)
			for where, table := range map[string]*metav1.Table{"list": l, "get": o, "watch": w} {
				checkIncluded(t, where, table, kind)
			}
		})
	}
}

func checkIncluded(t *testing.T, where string, table *metav1.Table, kind string) {
	t.Helper()
	if kind == "" {
		if raw := table.Rows[0].Object.Raw; len(raw) > 0 && string(raw) != "null" {
			t.Errorf("%s: the row has %s", where, raw)
		}
		return
	}
	if got := rowObject(t, table, 0).GetKind(); got != kind {
		t.Errorf("%s: the row has a %q, not a %q", where, got, kind)
	}
}

func garbageInclude(t *testing.T, s *subject) {
	s.client.Get(t, s.path+"?includeObject=x", wire.Table).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

func metadataOnly(t *testing.T, s *subject) {
	l := s.list(t, "")
	var metadata metav1.PartialObjectMetadataList
	s.client.Get(t, s.path, wire.MetadataList).Decode(t, &metadata)
	if metadata.Kind != "PartialObjectMetadataList" || len(metadata.Items) != len(l.Items) || older(t, metadata.ResourceVersion, l.GetResourceVersion()) {
		t.Errorf("%s of %d items and version %s", metadata.Kind, len(metadata.Items), metadata.ResourceVersion)
	}
	name := l.Items[0].GetName()
	one := s.client.Get(t, s.object(name), wire.Metadata).Object(t)
	first := s.watchAs(t, "", wire.Metadata).Next(t).Object(t)
	for where, o := range map[string]*unstructured.Unstructured{"get": one, "watch": first} {
		if o.GetKind() != "PartialObjectMetadata" || o.GetName() != name || len(o.Object) != 3 {
			t.Errorf("%s: %v", where, o.Object)
		}
	}
}

func metadataOfTheWrongNumber(t *testing.T, s *subject) {
	s.client.Get(t, s.path, wire.Metadata).Refused(t, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable)
	s.client.Get(t, s.object(s.first(t)), wire.MetadataList).Refused(t, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable)
}

func protobufFirst(t *testing.T, s *subject) {
	const accept = wire.Protobuf + "," + wire.JSON
	for _, path := range []string{s.path, s.object(s.first(t)), s.path + "?watch=1&timeoutSeconds=1"} {
		if a := s.client.Get(t, path, accept); a.Status != http.StatusOK {
			t.Errorf("%s: the answer is %d: %.300s", path, a.Status, a.Body)
		}
	}
}

func protobufOnly(t *testing.T, s *subject) {
	a := s.client.Get(t, s.path, wire.Protobuf)
	if a.Status != http.StatusNotAcceptable {
		t.Errorf("the answer is %d of %s", a.Status, a.Header.Get("Content-Type"))
	}
}

func yamlIsJSON(t *testing.T, s *subject) {
	name := s.first(t)
	a := s.client.Get(t, s.object(name), wire.YAML)
	if got := a.Header.Get("Content-Type"); a.Status != http.StatusOK || got != wire.YAML {
		t.Fatalf("the answer is %d of %s", a.Status, got)
	}
	var got unstructured.Unstructured
	if err := yaml.Unmarshal(a.Body, &got.Object); err != nil {
		t.Fatal(err)
	}
	want := s.client.Get(t, s.object(name), wire.JSON).Object(t)
	if got.GetResourceVersion() != want.GetResourceVersion() {
		return
	}
	content, err := json.Marshal(got.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("YAML differs (-JSON +YAML):\n%s", diff)
	}
}

func cborOrNot(t *testing.T, s *subject) {
	a := s.client.Get(t, s.path, wire.CBOR)
	if a.Status != http.StatusNotAcceptable && (a.Status != http.StatusOK || a.Header.Get("Content-Type") != wire.CBOR) {
		t.Errorf("the answer is %d of %s", a.Status, a.Header.Get("Content-Type"))
	}
	if a := s.client.Get(t, s.path, wire.CBOR+","+wire.JSON); a.Status != http.StatusOK {
		t.Errorf("with JSON to choose, the answer is %d: %.300s", a.Status, a.Body)
	}
}

func nothingAcceptable(t *testing.T, s *subject) {
	for _, accept := range []string{
		"text/html",
		"application/json;as=Table;g=meta.k8s.io;v=v9",
		"application/json;as=Nothing;g=meta.k8s.io;v=v1",
	} {
		s.client.Get(t, s.path, accept).Refused(t, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable)
	}
	const withFallback = "application/json;as=Table;g=meta.k8s.io;v=v9,application/json"
	s.client.Get(t, s.path, withFallback).List(t)
}

func anythingIsJSON(t *testing.T, s *subject) {
	a := s.client.Get(t, s.path, "*/*")
	a.List(t)
	if got := a.Header.Get("Content-Type"); got != wire.JSON {
		t.Errorf("the answer is %s", got)
	}
}

func gzipIsTheSame(t *testing.T, s *subject) {
	rv := s.list(t, "").GetResourceVersion()
	path := s.path + "?resourceVersionMatch=Exact&resourceVersion=" + rv
	plain := s.client.Get(t, path, wire.JSON)
	packed := s.client.Send(t, http.MethodGet, path, http.Header{"Accept": {wire.JSON}, "Accept-Encoding": {"gzip"}}, "")
	if diff := cmp.Diff(plain.List(t), unpacked(t, packed).List(t)); diff != "" {
		t.Errorf("compressed it differs (-plain +gzip):\n%s", diff)
	}
}

// unpacked is an answer as it was before it was compressed.
func unpacked(t *testing.T, a wire.Answer) wire.Answer {
	t.Helper()
	if a.Header.Get("Content-Encoding") != "gzip" {
		return a
	}
	reader, err := gzip.NewReader(bytes.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if a.Body, err = io.ReadAll(reader); err != nil {
		t.Fatal(err)
	}
	return a
}
