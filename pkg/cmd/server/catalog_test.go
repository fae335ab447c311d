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
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/informers/externalversions"
)

const (
	entries = "/apis/images.cozystack.io/v1alpha1/catalogentries"

	// Of the images that the catalog declares one is there, one is not, and one is declared twice. A pool asks
	// for one that nobody declares.
	made     = "talos-worker-aaa-v1.13.6"
	notMade  = "talos-worker-bbb-v1.13.6"
	twice    = "talos-worker-ccc-v1.13.6"
	askedFor = "talos-worker-ddd-v1.12.0"

	fullCatalog = `
storageClass: replicated
images:
- {schematicID: aaa, version: v1.13.6}
- {schematicID: bbb, version: v1.13.6, storage: 8Gi}
- {schematicID: ccc, version: v1.13.6}
- {schematicID: ccc, version: v1.13.6}
`
)

// startWithCatalog runs a server on a snapshot with a catalog and a pool.
func startWithCatalog(t *testing.T) *fixture {
	t.Helper()
	f := start(t, map[string]string{made: "ImportInProgress"})
	f.putCatalog(t, fullCatalog)
	f.put(t, "pools.yaml", `
apiVersion: apps.cozystack.io/v1alpha1
kind: KubernetesNodes
metadata: {namespace: tenant-a, name: k1-md0}
spec: {cluster: k1, storageClass: replicated, osImage: {builtin: {schematicID: ddd, version: v1.12.0}}}
`)
	eventually(t, "the entries are there", func(ctx context.Context) (bool, error) {
		return len(f.entryNames(ctx, t, "")) == 4, nil
	})
	return f
}

func (f *fixture) putCatalog(t *testing.T, document string) {
	t.Helper()
	f.put(t, "catalog.yaml", configMap(document))
}

func configMap(document string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: cozy-public, name: worker-image-catalog}\n" +
		"data:\n  catalog.yaml: |\n" + indent(document)
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

func (f *fixture) entryNames(ctx context.Context, t *testing.T, selector string) []string {
	t.Helper()
	list, err := f.client.ImagesV1alpha1().CatalogEntries().List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(list.Items))
	for _, entry := range list.Items {
		names = append(names, entry.Name)
	}
	return names
}

func TestCatalogEntriesAreServed(t *testing.T) {
	f := startWithCatalog(t)
	for name, want := range map[string]struct {
		phase  v1alpha1.CatalogEntryPhase
		spec   v1alpha1.CatalogEntrySpec
		pools  int32
		reason string
	}{
		made: {"Importing", v1alpha1.CatalogEntrySpec{SchematicID: "aaa", Version: "v1.13.6",
			ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi", StorageClassName: "replicated"}, 0, "Declared"},
		notMade: {"Available", v1alpha1.CatalogEntrySpec{SchematicID: "bbb", Version: "v1.13.6",
			ImageFactoryURL: "https://factory.talos.dev", Storage: "8Gi", StorageClassName: "replicated"}, 0, "Declared"},
		twice:    {"Invalid", v1alpha1.CatalogEntrySpec{SchematicID: "ccc", Version: "v1.13.6"}, 0, "Rejected"},
		askedFor: {"Missing", v1alpha1.CatalogEntrySpec{SchematicID: "ddd", Version: "v1.12.0"}, 1, "NotDeclared"},
	} {
		t.Run(name, func(t *testing.T) {
			entry, err := f.client.ImagesV1alpha1().CatalogEntries().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.spec, entry.Spec); diff != "" {
				t.Errorf("unexpected spec (-want +got):\n%s", diff)
			}
			reason := meta.FindStatusCondition(entry.Status.Conditions, v1alpha1.ConditionValid).Reason
			if entry.Status.Phase != want.phase || entry.Status.PoolCount != want.pools || reason != want.reason {
				t.Errorf("phase %s, %d pools, reason %s", entry.Status.Phase, entry.Status.PoolCount, reason)
			}
			if entry.UID == "" || !entry.CreationTimestamp.IsZero() {
				t.Errorf("uid %q, created at %s", entry.UID, entry.CreationTimestamp)
			}
		})
	}
}

func TestNobodyWritesCatalogEntries(t *testing.T) {
	f := startWithCatalog(t)
	client, err := rest.HTTPClientFor(f.config)
	if err != nil {
		t.Fatal(err)
	}
	for method, path := range map[string]string{
		http.MethodPost: entries, http.MethodPut: entries + "/" + made, http.MethodPatch: entries + "/" + made, http.MethodDelete: entries + "/" + made,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, f.config.Host+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/merge-patch+json")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
}

func TestSelectorsOfCatalogEntries(t *testing.T) {
	f := startWithCatalog(t)
	for selector, want := range map[string][]string{
		"status.phase=Missing":                        {askedFor},
		"status.phase=Invalid":                        {twice},
		"status.phase!=Available":                     {made, twice, askedFor},
		"spec.schematicID=aaa":                        {made},
		"spec.version=v1.13.6":                        {made, notMade, twice},
		"metadata.name=" + notMade:                    {notMade},
		"status.phase=Available,spec.version=v1.12.0": {},
	} {
		if diff := cmp.Diff(want, f.entryNames(t.Context(), t, selector)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", selector, diff)
		}
	}
	for _, selector := range []string{"status.declared=true", "spec.storage=6Gi", "status.storageClass.effective=replicated"} {
		_, err := f.client.ImagesV1alpha1().CatalogEntries().List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "status.phase") {
			t.Errorf("list %s: %v", selector, err)
		}
		if _, err := f.client.ImagesV1alpha1().CatalogEntries().Watch(t.Context(), metav1.ListOptions{FieldSelector: selector}); !apierrors.IsBadRequest(err) {
			t.Errorf("watch %s: %v", selector, err)
		}
	}
}

func TestTableOfCatalogEntries(t *testing.T) {
	f := startWithCatalog(t)
	res, body := f.request(t, entries, http.Header{"Accept": {"application/json;as=Table;g=meta.k8s.io;v=v1"}})
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v: %s", res.StatusCode, err, body)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", column.Name, column.Priority))
	}
	want := []string{"Name/0", "Version/0", "Phase/0", "Declared/0", "Pools/0", "Schematic/1", "StorageClass/1", "Size/1", "Source/1", "Reason/1"}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("unexpected columns (-want +got):\n%s", diff)
	}
	rows := [][]any{}
	for _, row := range table.Rows {
		rows = append(rows, row.Cells)
	}
	wantRows := [][]any{
		{made, "v1.13.6", "Importing", true, 0.0, "aaa", "replicated", "6Gi", "https://factory.talos.dev", ""},
		{notMade, "v1.13.6", "Available", true, 0.0, "bbb", "replicated", "8Gi", "https://factory.talos.dev", "NotCreated"},
		{twice, "v1.13.6", "Invalid", true, 0.0, "ccc", "", "", "", "Rejected"},
		{askedFor, "v1.12.0", "Missing", false, 1.0, "ddd", "", "", "", "NotDeclared"},
	}
	if diff := cmp.Diff(wantRows, rows); diff != "" {
		t.Errorf("unexpected rows (-want +got):\n%s", diff)
	}
}

func TestAGoldenOutlivesItsEntryInTheCatalog(t *testing.T) {
	f := startWithCatalog(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	list, err := f.client.ImagesV1alpha1().CatalogEntries().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.client.ImagesV1alpha1().CatalogEntries().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.putCatalog(t, `images: [{schematicID: bbb, version: v1.13.6, storage: 8Gi}]
storageClass: replicated`)
	want := []string{string(watch.Deleted) + " " + made, string(watch.Deleted) + " " + twice}
	var got []string
	for event := range w.ResultChan() {
		entry, ok := event.Object.(*v1alpha1.CatalogEntry)
		if !ok {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
		got = append(got, string(event.Type)+" "+entry.Name)
		if len(got) == len(want) {
			break
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected events (-want +got):\n%s", diff)
	}
	image, err := f.client.ImagesV1alpha1().WorkerImages().Get(ctx, made, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the golden is gone as well: %v", err)
	}
	c := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionCatalogSynced)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "NotDeclared" || image.Status.Catalog.Declared {
		t.Errorf("condition %+v, status %+v", c, image.Status.Catalog)
	}
}

func TestABrokenCatalogLeavesTheLastGoodOneInForce(t *testing.T) {
	f := startWithCatalog(t)
	f.putCatalog(t, "images: {")
	f.put(t, "marker.yaml", `
apiVersion: apps.cozystack.io/v1alpha1
kind: KubernetesNodes
metadata: {namespace: tenant-a, name: k1-md1}
spec: {cluster: k1, osImage: {builtin: {schematicID: eee, version: v1.12.0}}}
`)
	eventually(t, "the snapshot was read again", func(ctx context.Context) (bool, error) {
		return slices.Contains(f.entryNames(ctx, t, "status.phase=Missing"), "talos-worker-eee-v1.12.0"), nil
	})
	want := []string{made, notMade, twice, askedFor, "talos-worker-eee-v1.12.0"}
	if diff := cmp.Diff(want, f.entryNames(t.Context(), t, "")); diff != "" {
		t.Errorf("unexpected entries (-want +got):\n%s", diff)
	}
}

func TestInformersOfCatalogEntries(t *testing.T) {
	f := startWithCatalog(t)
	factory := externalversions.NewSharedInformerFactory(f.client, 0)
	informer := factory.Images().V1alpha1().CatalogEntries()
	synced := informer.Informer().HasSynced
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("the informer did not sync")
	}
	f.put(t, "pools.yaml", "")
	f.putCatalog(t, "images: [{schematicID: bbb, version: v1.13.6}]")
	eventually(t, "the informer follows", func(context.Context) (bool, error) {
		return slices.Equal(informer.Informer().GetStore().ListKeys(), []string{notMade}), nil
	})
}

func TestTheStateOfTheCatalogIsInReadinessAndMetrics(t *testing.T) {
	f := startWithCatalog(t)
	shows := func(path string, want ...string) bool {
		res, body := f.request(t, path, nil)
		return res.StatusCode == http.StatusOK && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(string(body), text) })
	}
	if !shows("/readyz?verbose", "[+]source-catalog ok") || !shows("/metrics", "\nworkerimage_catalog_valid 1\n",
		"\nworkerimage_catalog_entries{state=\"accepted\"} 2\n", "\nworkerimage_catalog_entries{state=\"rejected\"} 2\n") {
		t.Error("a good catalog is not shown as it is")
	}
	f.putCatalog(t, "images: {")
	eventually(t, "a broken catalog is shown and takes nothing down", func(context.Context) (bool, error) {
		return shows("/readyz?verbose", "[+]source-catalog (does not parse) ok") &&
			shows("/metrics", "\nworkerimage_catalog_valid 0\n", "\nworkerimage_catalog_entries{state=\"accepted\"} 2\n"), nil
	})
}
