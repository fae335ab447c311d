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

package inventory

import (
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// Catalog is the catalog that is in force: the last one that could be read, and an empty one if none could.
// It is shared and must not be modified.
func (i *Inventory) Catalog() *catalog.Catalog {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.index.catalog
}

// CatalogReadable is true while the catalog in force is what the cluster holds, give or take the grace period.
func (i *Inventory) CatalogReadable() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.catalog.readable
}

// Classes are the StorageClasses, sorted by name, and whether they can be read now. They are shared and must
// not be modified.
func (i *Inventory) Classes() (classes storageclass.Classes, readable bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.index.classValues(), i.storageClasses.readable
}

// documentMoved puts the catalog in force that the document holds. A document that is none changes nothing,
// and where there is no document, nothing is declared.
func (x *index) documentMoved(_ key, _, to *document) {
	switch {
	case to == nil:
		x.catalog = catalog.Empty()
	case to.catalog != nil:
		x.catalog = to.catalog
	}
}
