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

package reader

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Table prints objects of type O, which are read as P.
type Table[O any, P object[O]] struct {
	Columns []Column[O]
	// Items returns those of a list, and false for anything that is no list of O.
	Items func(list runtime.Object) ([]O, bool)
}

// object is a pointer to an O.
type object[O any] interface {
	*O
	runtime.Object
	metav1.Object
}

// Column is a column and what it shows of an object.
type Column[O any] struct {
	metav1.TableColumnDefinition
	Cell func(*O) any
}

// Always returns a column that is always printed.
func Always[O any](name, kind, description string, cell func(*O) any) Column[O] {
	return Column[O]{TableColumnDefinition: metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}, Cell: cell}
}

// Wide returns a column that is printed on demand.
func Wide[O any](name, kind, description string, cell func(*O) any) Column[O] {
	column := Always(name, kind, description, cell)
	column.Priority = 1
	return column
}

// Name returns the column that clients take for the name of the object.
func Name[O any, P object[O]](description string) Column[O] {
	column := Always("Name", "string", description, func(o *O) any { return P(o).GetName() })
	column.Format = "name"
	return column
}

// ConvertToTable returns what kubectl get prints.
func (t Table[O, P]) ConvertToTable(_ context.Context, from, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := from.(P); ok {
		table.ResourceVersion = o.GetResourceVersion()
		table.Rows = []metav1.TableRow{t.row(o)}
	} else if err := t.addList(table, from); err != nil {
		return nil, err
	}
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		for _, column := range t.Columns {
			table.ColumnDefinitions = append(table.ColumnDefinitions, column.TableColumnDefinition)
		}
	}
	return table, nil
}

func (t Table[O, P]) addList(table *metav1.Table, from runtime.Object) error {
	items, ok := t.Items(from)
	list, err := meta.ListAccessor(from)
	if !ok || err != nil {
		return fmt.Errorf("neither %T nor a list of them: %T", P(nil), from)
	}
	table.ListMeta = metav1.ListMeta{
		ResourceVersion:    list.GetResourceVersion(),
		Continue:           list.GetContinue(),
		RemainingItemCount: list.GetRemainingItemCount(),
	}
	table.Rows = make([]metav1.TableRow, 0, len(items))
	for i := range items {
		table.Rows = append(table.Rows, t.row(&items[i]))
	}
	return nil
}

func (t Table[O, P]) row(o P) metav1.TableRow {
	row := metav1.TableRow{Object: runtime.RawExtension{Object: o}, Cells: make([]any, 0, len(t.Columns))}
	for _, column := range t.Columns {
		row.Cells = append(row.Cells, column.Cell(o))
	}
	return row
}

// shortLength is how many characters of a schematic id tell it from others.
const shortLength = 12

// Short returns the first characters of a schematic id.
func Short(schematicID string) string { return schematicID[:min(shortLength, len(schematicID))] }
