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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/reader"
)

// newTable returns what kubectl get prints.
func newTable() reader.Table[images.CatalogEntry, *images.CatalogEntry] {
	return reader.Table[images.CatalogEntry, *images.CatalogEntry]{
		Items: func(list runtime.Object) ([]images.CatalogEntry, bool) {
			l, ok := list.(*images.CatalogEntryList)
			if !ok {
				return nil, false
			}
			return l.Items, true
		},
		Columns: []reader.Column[images.CatalogEntry]{
			reader.Name[images.CatalogEntry]("Name of the entry and of its golden."),
			reader.Always("Version", "string", "Talos release.", version),
			reader.Always("Phase", "string", "Where the image stands, or why there is none.", phase),
			reader.Always("Declared", "boolean", "Whether the catalog has the entry.", declared),
			reader.Always("Pools", "integer", "Number of pools that ask for the image, as far as you may see them.", pools),
			reader.Wide("Schematic", "string", "First characters of the schematic id.", schematic),
			reader.Wide("StorageClass", "string", "Class that is asked for.", storageClass),
			reader.Wide("Size", "string", "Size that is asked for.", size),
			reader.Wide("Source", "string", "Factory or mirror that the image is imported from.", source),
			reader.Wide("Reason", "string", "Reason of the first condition that is not True.", reason),
		},
	}
}

func version(entry *images.CatalogEntry) any { return entry.Spec.Version }

func phase(entry *images.CatalogEntry) any { return string(entry.Status.Phase) }

func declared(entry *images.CatalogEntry) any { return entry.Status.Declared }

func pools(entry *images.CatalogEntry) any { return int64(entry.Status.PoolCount) }

func schematic(entry *images.CatalogEntry) any { return reader.Short(entry.Spec.SchematicID) }

func storageClass(entry *images.CatalogEntry) any { return entry.Spec.StorageClassName }

func size(entry *images.CatalogEntry) any { return entry.Spec.Storage }

func source(entry *images.CatalogEntry) any { return entry.Spec.ImageFactoryURL }

func reason(entry *images.CatalogEntry) any {
	for _, c := range entry.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
