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

package workerimage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

func image() *images.WorkerImage {
	return &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{
			Name: "talos-worker-gpu-nvidia-open-v1.13.6", ResourceVersion: "7",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3*time.Hour - time.Minute)),
		},
		Spec: images.WorkerImageSpec{SchematicID: "gpu-nvidia-open", Version: "v1.13.6"},
		Status: images.WorkerImageStatus{
			Phase:         images.WorkerImageImporting,
			Progress:      ptr.To[int32](45),
			Source:        &images.ImageSource{URL: "https://factory/image"},
			Storage:       &images.StorageStatus{Requested: "6Gi", Capacity: "7Gi"},
			StorageClass:  &images.StorageClassStatus{Bound: ptr.To("local"), Effective: "replicated"},
			CloneStrategy: "csi-clone",
			Catalog:       &images.CatalogStatus{Declared: true},
			PoolCount:     2,
			Conditions:    []metav1.Condition{{Type: images.ConditionReady, Status: metav1.ConditionFalse, Reason: "Importing"}},
		},
	}
}

func TestTableShowsWhatMatters(t *testing.T) {
	table, err := newTable().ConvertToTable(t.Context(), image(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	want := map[string]any{
		"Name": "talos-worker-gpu-nvidia-open-v1.13.6", "Version": "v1.13.6", "Phase": "Importing", "Progress": "45%",
		"StorageClass": "replicated", "Size": "6Gi", "Pools": int64(2), "Age": "3h1m",
		"Schematic": "gpu-nvidia-o", "Clone": "csi-clone", "Declared": "true", "Reason": "Importing", "Source": "https://factory/image",
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("unexpected cells (-want +got):\n%s", diff)
	}
	if table.ResourceVersion != "7" {
		t.Errorf("the table of an object has version %q", table.ResourceVersion)
	}
}

func TestTableOfAnObjectThatSaysNothing(t *testing.T) {
	table, err := newTable().ConvertToTable(t.Context(), &images.WorkerImage{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(table.Rows[0].Cells), len(newTable().Columns); got != want {
		t.Errorf("%d cells under %d columns", got, want)
	}
}

func TestTableOfAListKeepsItsPage(t *testing.T) {
	list := &images.WorkerImageList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next", RemainingItemCount: ptr.To[int64](3)},
		Items:    []images.WorkerImage{*image(), *image()},
	}
	table, err := newTable().ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list.ListMeta, table.ListMeta); diff != "" {
		t.Errorf("unexpected page (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 2 || table.ColumnDefinitions != nil {
		t.Errorf("%d rows and the headers %v for two objects without headers", len(table.Rows), table.ColumnDefinitions)
	}
}

func TestTableOfSomethingElseIsAnError(t *testing.T) {
	if _, err := newTable().ConvertToTable(t.Context(), &images.Option{}, nil); err == nil {
		t.Error("an Option was printed as a WorkerImage")
	}
}
