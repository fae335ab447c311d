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

package option

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// Guards: the columns of the table.
func TestTableShowsWhatMatters(t *testing.T) {
	list := &images.OptionList{Items: []images.Option{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "workerimage-version"},
			Spec:       images.OptionSpec{Items: []images.OptionItem{{Value: "a", Label: "A"}, {Value: "b", Label: "B", Default: true}}},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: "workerimage"}},
	}}
	table, err := newTable().ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Items", "Default"}, columns); diff != "" {
		t.Errorf("unexpected columns (-want +got):\n%s", diff)
	}
	rows := [][]any{table.Rows[0].Cells, table.Rows[1].Cells}
	if diff := cmp.Diff([][]any{{"workerimage-version", int64(2), "B"}, {"workerimage", int64(0), ""}}, rows); diff != "" {
		t.Errorf("unexpected rows (-want +got):\n%s", diff)
	}
}

// Guards: the kinds that the table takes.
func TestTableOfSomethingElseIsAnError(t *testing.T) {
	for _, other := range []runtime.Object{&images.WorkerImage{}, &images.WorkerImageList{}} {
		if _, err := newTable().ConvertToTable(t.Context(), other, nil); err == nil {
			t.Errorf("%T was printed as an Option", other)
		}
	}
}
