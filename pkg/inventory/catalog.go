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
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// Catalog is the catalog that is in force: the last one that could be read, and an empty one if none could.
// It is shared and must not be modified.
func (i *Inventory) Catalog() *catalog.Catalog {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.index.catalog
}

// CatalogReadable is true while the catalog in force is what the cluster holds, give or take the grace period,
// or the last good one in the place of one that does not parse.
func (i *Inventory) CatalogReadable() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.catalogReadable()
}

func (i *Inventory) catalogReadable() bool { return i.catalog.readable && !i.index.unparsed() }

// Classes are the StorageClasses, sorted by name, and whether they can be read now. They are shared and must
// not be modified.
func (i *Inventory) Classes() (classes storageclass.Classes, readable bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.index.classValues(), i.storageClasses.readable
}

// CatalogReport says what became of the ConfigMap of the catalog.
type CatalogReport struct {
	// UID of the ConfigMap; empty where there is none.
	UID types.UID
	// Err says why its text is no catalog; empty where it is one.
	Err string
	// Catalog is the one in force.
	Catalog *catalog.Catalog
}

// takeReport returns what became of the catalog, once for each content.
func (i *Inventory) takeReport() (CatalogReport, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.catalog.synced || !i.index.reportDue {
		return CatalogReport{}, false
	}
	i.index.reportDue = false
	report := CatalogReport{Catalog: i.index.catalog}
	if d := i.index.document(); d != nil {
		report.UID, report.Err = d.uid, d.err
	}
	return report, true
}

// document is nil where there is none.
func (x *index) document() *document {
	for _, d := range x.documents.values {
		return d
	}
	return nil
}

// malformed is true while the document is no catalog.
func (x *index) malformed() bool {
	d := x.document()
	return d != nil && d.catalog == nil
}

// unparsed is true while the document is no catalog and no good one was there before.
func (x *index) unparsed() bool { return x.malformed() && !x.parsed }

// documentMoved puts the catalog in force that the document holds. A document that is none changes nothing,
// and where there is no document, nothing is declared.
func (x *index) documentMoved(_ key, _, to *document) {
	x.reportDue = true
	next := x.catalog
	switch {
	case to == nil:
		next = catalog.Empty()
	case to.catalog != nil:
		next = to.catalog
	}
	isFirst := !x.parsed
	x.parsed = x.parsed || to != nil && to.catalog != nil
	if isFirst {
		// What cannot be read becomes readable, or the other way round.
		x.markAll()
	}
	x.declare(next)
}

// declare makes the names dirty of which the catalog says something new.
func (x *index) declare(next *catalog.Catalog) {
	before := x.declarations
	x.catalog, x.declarations = next, declarations(next)
	for name, declaration := range x.declarations {
		if !sameDeclaration(before[name], declaration) {
			x.dirty.Insert(name)
		}
	}
	for name := range before {
		if _, ok := x.declarations[name]; !ok {
			x.dirty.Insert(name)
		}
	}
}

// declarations are what a catalog says about each image that it names.
func declarations(c *catalog.Catalog) map[string]projection.Declaration {
	out := make(map[string]projection.Declaration, len(c.Entries))
	for n := range c.Entries {
		out[c.Entries[n].Name()] = projection.Declaration{Entry: &c.Entries[n]}
	}
	for _, r := range c.Rejected {
		if isPair := r.ID.SchematicID != "" && r.ID.Version != ""; isPair {
			declaration := out[r.ID.Name()]
			declaration.Rejections = append(declaration.Rejections, r)
			out[r.ID.Name()] = declaration
		}
	}
	return out
}

func sameDeclaration(a, b projection.Declaration) bool {
	if !slices.Equal(a.Rejections, b.Rejections) {
		return false
	}
	if a.Entry == nil || b.Entry == nil {
		return a.Entry == b.Entry
	}
	return *a.Entry == *b.Entry
}
