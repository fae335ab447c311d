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

package catalogentry

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

func entry() *images.CatalogEntry {
	return &images.CatalogEntry{
		ObjectMeta: metav1.ObjectMeta{Name: "talos-worker-gpu-nvidia-open-v1.13.6", Labels: map[string]string{"team": "a"}},
		Spec: images.CatalogEntrySpec{
			SchematicID: "gpu-nvidia-open", Version: "v1.13.6",
			ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi", StorageClassName: "replicated",
		},
		Status: images.CatalogEntryStatus{
			Declared: true, Phase: images.CatalogEntryMissing, PoolCount: 2,
			Conditions: []metav1.Condition{
				{Type: images.ConditionValid, Status: metav1.ConditionTrue, Reason: "Declared"},
				{Type: images.ConditionMaterialized, Status: metav1.ConditionFalse, Reason: "NotCreated"},
			},
		},
	}
}

func TestSelectableFieldsAreTheServedOnes(t *testing.T) {
	labels, fields, err := Attributes(entry())
	if err != nil {
		t.Fatal(err)
	}
	if labels.Get("team") != "a" {
		t.Errorf("labels %v", labels)
	}
	want := map[string]string{
		"metadata.name":    "talos-worker-gpu-nvidia-open-v1.13.6",
		"spec.schematicID": "gpu-nvidia-open",
		"spec.version":     "v1.13.6",
		"status.phase":     "Missing",
	}
	if diff := cmp.Diff(want, map[string]string(fields)); diff != "" {
		t.Errorf("unexpected fields (-want +got):\n%s", diff)
	}
	served := slices.Clone(v1alpha1.CatalogEntrySelectableFields)
	slices.Sort(served)
	if diff := cmp.Diff([]string{"metadata.name", "spec.schematicID", "spec.version", "status.phase"}, served); diff != "" {
		t.Errorf("other fields are served (-want +got):\n%s", diff)
	}
	if _, _, err := Attributes(&images.WorkerImage{}); err == nil {
		t.Error("a WorkerImage has the attributes of a CatalogEntry")
	}
}

func TestTableShowsWhatMatters(t *testing.T) {
	table, err := newTable().ConvertToTable(t.Context(), entry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	want := map[string]any{
		"Name": "talos-worker-gpu-nvidia-open-v1.13.6", "Version": "v1.13.6", "Phase": "Missing", "Declared": true, "Pools": int64(2),
		"Schematic": "gpu-nvidia-o", "StorageClass": "replicated", "Size": "6Gi", "Source": "https://factory.talos.dev", "Reason": "NotCreated",
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("unexpected cells (-want +got):\n%s", diff)
	}
}

func TestTheReasonIsThatOfTheFirstConditionThatIsNotTrue(t *testing.T) {
	object := entry()
	object.Status.Conditions[0].Status, object.Status.Conditions[0].Reason = metav1.ConditionUnknown, "SourceNotReadable"
	if got := reason(object); got != "SourceNotReadable" {
		t.Errorf("reason %v", got)
	}
	for i := range object.Status.Conditions {
		object.Status.Conditions[i].Status = metav1.ConditionTrue
	}
	if got := reason(object); got != "" {
		t.Errorf("reason %v of an entry that is well", got)
	}
}

func TestTableOfAList(t *testing.T) {
	table, err := newTable().ConvertToTable(t.Context(), &images.CatalogEntryList{Items: []images.CatalogEntry{*entry(), *entry()}}, nil)
	if err != nil || len(table.Rows) != 2 {
		t.Errorf("%v, %v", table, err)
	}
	for _, other := range []runtime.Object{&images.WorkerImage{}, &images.WorkerImageList{}} {
		if _, err := newTable().ConvertToTable(t.Context(), other, nil); err == nil {
			t.Errorf("%T was printed as a CatalogEntry", other)
		}
	}
}
