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
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

func TestLookup(t *testing.T) {
	catalog := parse(t, "images: [{schematicID: b, version: v1.0.0}, {schematicID: abc, version: v1.0.0-v2.0.0}, {schematicID: a, version: v1.0.0}]")
	for name, test := range map[string]struct {
		id   golden.ID
		want bool
	}{
		"a pair that is declared": {golden.ID{SchematicID: "a", Version: "v1.0.0"}, true},
		"the last pair by name":   {golden.ID{SchematicID: "b", Version: "v1.0.0"}, true},
		"another version":         {golden.ID{SchematicID: "a", Version: "v1.0.1"}, false},
		"another schematic":       {golden.ID{SchematicID: "c", Version: "v1.0.0"}, false},
		"nothing":                 {golden.ID{}, false},
		"an illegal pair with the name of a legal one": {golden.ID{SchematicID: "abc-v1.0.0", Version: "v2.0.0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			entry, found := catalog.Lookup(test.id)
			if found != test.want || (found && entry.ID != test.id) {
				t.Errorf("Lookup(%+v) = %+v, %v", test.id, entry, found)
			}
		})
	}
}

func TestEmptyCatalogDeclaresNothing(t *testing.T) {
	if diff := cmp.Diff(Empty(), parse(t, "")); diff != "" {
		t.Errorf("an empty document is not an empty catalog:\n%s", diff)
	}
	if entry, found := Empty().Lookup(golden.ID{SchematicID: "a", Version: "v1.0.0"}); found {
		t.Errorf("found %+v", entry)
	}
	if nearest := Empty().Nearest(golden.ID{SchematicID: "a", Version: "v1.0.0"}, 3); len(nearest) != 0 {
		t.Errorf("nearest %v", nearest)
	}
}
