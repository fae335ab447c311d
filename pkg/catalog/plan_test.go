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
	"strings"
	"testing"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

func TestPlan(t *testing.T) {
	replicated := storageclass.Classes{{Name: "replicated", Default: true}}
	const declared = `
images:
- {schematicID: aaa, version: v1.13.6}
- {schematicID: aaa, version: v1.12.0, storageClass: replicated}
- {schematicID: gpu, version: v1.13.6, storageClass: fast}
- {schematicID: twice, version: v1.13.6}
- {schematicID: twice, version: v1.13.6}
`
	for _, test := range []struct {
		name    string
		catalog string
		id      golden.ID
		classes storageclass.Classes
		refused []string
	}{
		{name: "an entry on a class that exists", catalog: declared, id: golden.ID{SchematicID: "aaa", Version: "v1.12.0"}, classes: replicated},
		{name: "an entry on the default class", catalog: declared, id: golden.ID{SchematicID: "aaa", Version: "v1.13.6"}, classes: replicated},
		{
			name: "an entry on the default class of a cluster that has none", catalog: declared, id: golden.ID{SchematicID: "aaa", Version: "v1.13.6"},
			classes: storageclass.Classes{{Name: "replicated"}}, refused: []string{"no default"},
		},
		{
			name: "an entry on a class that does not exist", catalog: declared, id: golden.ID{SchematicID: "gpu", Version: "v1.13.6"},
			classes: replicated, refused: []string{`"fast"`, "does not exist"},
		},
		{
			name: "a pair that nobody declared names the nearest ones", catalog: declared, id: golden.ID{SchematicID: "aaa", Version: "v1.13.5"},
			classes: replicated, refused: []string{"schematicID aaa, version v1.13.5", "(aaa, v1.13.6), (aaa, v1.12.0)"},
		},
		{
			name: "a pair whose entry is rejected says why", catalog: declared, id: golden.ID{SchematicID: "twice", Version: "v1.13.6"},
			classes: replicated, refused: []string{"rejected", "images["},
		},
		{
			name: "an empty catalog", id: golden.ID{SchematicID: "aaa", Version: "v1.13.6"},
			classes: replicated, refused: []string{"declares no image"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse([]byte(test.catalog))
			if err != nil {
				t.Fatal(err)
			}
			entry, errs := c.Plan(test.id, test.classes)
			if len(test.refused) == 0 {
				if len(errs) > 0 || entry.ID != test.id {
					t.Errorf("got %v, %v", entry, errs)
				}
				return
			}
			if len(errs) != 1 || errs[0].Field != "spec" {
				t.Fatalf("got %v, want one error about the spec", errs)
			}
			for _, want := range test.refused {
				if !strings.Contains(errs[0].Error(), want) {
					t.Errorf("%q does not say %q", errs[0], want)
				}
			}
		})
	}
}
