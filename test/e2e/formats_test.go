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

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

const initialEventsEnd = "k8s.io/initial-events-end"

// streamed asks for a list as the beginning of a watch.
const streamed = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

func TestTables(t *testing.T) {
	p := settledPlatform(t)
	t.Run("of a list", func(t *testing.T) {
		var table metav1.Table
		p.wire.Get(t, workerImages, wire.Table).Decode(t, &table)
		checkTable(t, &table, len(samples))
		var list v1alpha1.WorkerImageList
		p.wire.Get(t, workerImages, wire.JSON).Decode(t, &list)
		if version(t, table.ResourceVersion) > version(t, list.ResourceVersion) {
			t.Errorf("the table is of %s, the list of %s", table.ResourceVersion, list.ResourceVersion)
		}
	})
	t.Run("of one image", func(t *testing.T) {
		var table metav1.Table
		p.wire.Get(t, workerImages+"/"+nvidiaSample, wire.Table).Decode(t, &table)
		checkTable(t, &table, 1)
	})
	t.Run("with whole objects", func(t *testing.T) {
		var table metav1.Table
		p.wire.Get(t, workerImages+"?includeObject=Object&fieldSelector=metadata.name="+nvidiaSample, wire.Table).Decode(t, &table)
		checkTable(t, &table, 1)
		var image v1alpha1.WorkerImage
		if err := yaml.Unmarshal(table.Rows[0].Object.Raw, &image); err != nil {
			t.Fatal(err)
		}
		equal(t, image.Spec.SchematicID, "gpu-nvidia")
	})
	t.Run("of a watch", func(t *testing.T) {
		events := p.watch(t, "&fieldSelector=metadata.name="+nvidiaSample, wire.Table)
		f := events.Next(t)
		equal(t, f.Type, watch.Added)
		var table metav1.Table
		f.Decode(t, &table)
		checkTable(t, &table, 1)
	})
	t.Run("of a streaming list", func(t *testing.T) {
		events := p.watch(t, streamed, wire.Table)
		for range samples {
			f := events.Next(t)
			equal(t, f.Type, watch.Added)
			var table metav1.Table
			f.Decode(t, &table)
			equal(t, len(table.Rows), 1)
		}
		for {
			f := events.Next(t)
			if f.Type == watch.Bookmark {
				if !strings.Contains(string(f.Raw), initialEventsEnd) {
					t.Errorf("the list does not end: %s", f.Raw)
				}
				return
			}
		}
	})
}

func checkTable(t *testing.T, table *metav1.Table, rows int) {
	t.Helper()
	equal(t, table.Kind, "Table")
	equal(t, len(table.Rows), rows)
	equal(t, len(table.ColumnDefinitions), 13)
	for _, row := range table.Rows {
		equal(t, len(row.Cells), len(table.ColumnDefinitions))
	}
}

func TestMetadataOnly(t *testing.T) {
	p := settledPlatform(t)
	client, err := metadata.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	images := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("workerimages"))
	list, err := images.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, len(list.Items), len(samples))
	one, err := images.Get(t.Context(), nvidiaSample, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image := p.awaitReady(t, nvidiaSample)
	equal(t, one.UID, image.UID)
	w, err := images.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + nvidiaSample})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event := <-w.ResultChan()
	object, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		t.Fatalf("the watch sends a %T", event.Object)
	}
	equal(t, object.Name, nvidiaSample)
}

func TestRepresentations(t *testing.T) {
	p := settledPlatform(t)
	for _, test := range []struct {
		name, accept string
		contentType  string
	}{
		{"JSON", wire.JSON, wire.JSON},
		{"YAML", wire.YAML, wire.YAML},
		{"whatever there is", "*/*", wire.JSON},
		{"JSON where protobuf is preferred", wire.Protobuf + "," + wire.JSON, wire.JSON},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := p.wire.Get(t, workerImages, test.accept)
			equal(t, a.Status, http.StatusOK)
			equal(t, a.Header.Get("Content-Type"), test.contentType)
		})
	}
	t.Run("none where only protobuf is accepted", func(t *testing.T) {
		equal(t, p.wire.Get(t, workerImages, wire.Protobuf).Status, http.StatusNotAcceptable)
	})
	t.Run("JSON for a watch where protobuf is preferred", func(t *testing.T) {
		f := p.watch(t, "&fieldSelector=metadata.name="+nvidiaSample, wire.Protobuf+","+wire.JSON).Next(t)
		equal(t, f.Image(t).Name, nvidiaSample)
	})
}

// An answer is compressed when it is large, so an image gets many pools here.
func TestLargeAnswersAreCompressed(t *testing.T) {
	p := quietPlatform(t)
	const count = 400
	p.createGolden(t, objects.NewGolden("large"))
	var many []*unstructured.Unstructured
	for i := range count {
		many = append(many, objects.NewPool("tenant-a", "large", fmt.Sprintf("md%d", i), "replicated", "large"))
	}
	p.createMany(t, objects.Pools, many)
	path := workerImages + "/" + objects.NameOf("large")
	p.awaitImage(t, objects.NameOf("large"), "used by all pools", func(image *v1alpha1.WorkerImage) bool { return image.Status.PoolCount == count })
	plain := p.wire.Get(t, path, wire.JSON)
	packed, err := p.wire.Try(t.Context(), http.MethodGet, path, http.Header{"Accept": {wire.JSON}, "Accept-Encoding": {"gzip"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, packed.Header.Get("Content-Encoding"), "gzip")
	if len(packed.Body) > len(plain.Body)/4 {
		t.Errorf("%d bytes are compressed to %d", len(plain.Body), len(packed.Body))
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed.Body))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, string(unpacked), string(plain.Body))
}
