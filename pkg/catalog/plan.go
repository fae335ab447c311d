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

package catalog

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// suggested is how many entries an error names that come close to what was asked for.
const suggested = 3

// Planner is Plan on the catalog and the classes of the moment.
type Planner func(id golden.ID) (Entry, field.ErrorList)

// Plan returns the entry that a golden of that pair is made from, or why none can be made now.
func (c *Catalog) Plan(id golden.ID, classes storageclass.Classes) (Entry, field.ErrorList) {
	entry, declared := c.Lookup(id)
	if !declared {
		return Entry{}, field.ErrorList{c.notDeclared(id)}
	}
	if err := entry.checkClass(classes); err != nil {
		return Entry{}, field.ErrorList{err}
	}
	return entry, nil
}

func (c *Catalog) notDeclared(id golden.ID) *field.Error {
	spec := field.NewPath("spec")
	pair := fmt.Sprintf("schematicID %s, version %s", id.SchematicID, id.Version)
	for _, rejection := range c.Rejected {
		if rejection.ID == id {
			return field.Invalid(spec, pair, fmt.Sprintf("the catalog's entry for it is rejected, at %s: %s; correct the catalog", rejection.Path, rejection.Message))
		}
	}
	nearest := make([]string, 0, suggested)
	for _, id := range c.Nearest(id, suggested) {
		nearest = append(nearest, fmt.Sprintf("%s, %s", id.SchematicID, id.Version))
	}
	if len(nearest) == 0 {
		return field.Invalid(spec, pair, "the catalog declares no image; declare this one first")
	}
	return field.Invalid(spec, pair, fmt.Sprintf("the catalog does not declare it; declare it first, or use one that is declared, such as (%s)", strings.Join(nearest, "), (")))
}

// checkClass finds out before CDI does whether a claim could get a volume: CDI would accept the DataVolume
// and let it wait.
func (e Entry) checkClass(classes storageclass.Classes) *field.Error {
	spec := field.NewPath("spec")
	if e.StorageClass == "" {
		if _, ok := classes.CDIDefault(""); !ok {
			return field.Invalid(spec, e.Name(), "the catalog names no StorageClass for it and the cluster has no default; name one in the catalog, or mark one as the default")
		}
		return nil
	}
	if !classes.Has(e.StorageClass) {
		return field.Invalid(spec, e.Name(), fmt.Sprintf("the catalog puts it on StorageClass %q, which does not exist; create the class, or name another in the catalog", e.StorageClass))
	}
	return nil
}
