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
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// shortSchematic is how many characters of a schematic id are printed.
const shortSchematic = 12

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the image and of its golden."},
	{Name: "Version", Type: "string", Description: "Talos release."},
	{Name: "Phase", Type: "string", Description: "Where the image stands."},
	{Name: "Progress", Type: "string", Description: "Progress of the import."},
	{Name: "StorageClass", Type: "string", Description: "Class that clones are compared with."},
	{Name: "Size", Type: "string", Description: "Size that was asked for."},
	{Name: "Pools", Type: "integer", Description: "Number of pools that consume the image, as far as you may see them."},
	{Name: "Age", Type: "date", Description: "Time since the golden was made."},
	{Name: "Schematic", Type: "string", Priority: 1, Description: "First characters of the schematic id."},
	{Name: "Clone", Type: "string", Priority: 1, Description: "Strategy of clones within the class."},
	{Name: "Declared", Type: "string", Priority: 1, Description: "Whether the catalog declares the image."},
	{Name: "Reason", Type: "string", Priority: 1, Description: "Reason of the condition Ready."},
	{Name: "Source", Type: "string", Priority: 1, Description: "Where the image was imported from."},
}

type tableConvertor struct{}

func (tableConvertor) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	switch o := object.(type) {
	case *images.WorkerImage:
		table.ResourceVersion = o.ResourceVersion
		table.Rows = []metav1.TableRow{row(o)}
	case *images.WorkerImageList:
		table.ListMeta = o.ListMeta
		table.Rows = make([]metav1.TableRow, 0, len(o.Items))
		for i := range o.Items {
			table.Rows = append(table.Rows, row(&o.Items[i]))
		}
	default:
		return nil, fmt.Errorf("not a WorkerImage or a list of them: %T", object)
	}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = columns
	}
	return table, nil
}

func row(image *images.WorkerImage) metav1.TableRow {
	s := &image.Status
	return metav1.TableRow{
		Object: runtime.RawExtension{Object: image},
		Cells: []any{
			image.Name,
			image.Spec.Version,
			string(s.Phase),
			progress(s.Progress),
			effectiveClass(s),
			size(s),
			int64(s.PoolCount),
			metatable.ConvertToHumanReadableDateType(image.CreationTimestamp),
			image.Spec.SchematicID[:min(shortSchematic, len(image.Spec.SchematicID))],
			s.CloneStrategy,
			declared(s),
			readyReason(s),
			sourceURL(s),
		},
	}
}

func progress(percent *int32) string {
	if percent == nil {
		return ""
	}
	return fmt.Sprintf("%d%%", *percent)
}

func effectiveClass(s *images.WorkerImageStatus) string {
	if s.StorageClass == nil {
		return ""
	}
	return s.StorageClass.Effective
}

func size(s *images.WorkerImageStatus) string {
	if s.Storage == nil {
		return ""
	}
	return s.Storage.Requested
}

func declared(s *images.WorkerImageStatus) string {
	if s.Catalog == nil {
		return ""
	}
	return fmt.Sprint(s.Catalog.Declared)
}

func readyReason(s *images.WorkerImageStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, images.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

func sourceURL(s *images.WorkerImageStatus) string {
	if s.Source == nil {
		return ""
	}
	return s.Source.URL
}
