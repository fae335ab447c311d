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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// pairs returns identities written as schematic/version.
func pairs(texts ...string) []golden.ID {
	var ids []golden.ID
	for _, text := range texts {
		schematic, version, _ := strings.Cut(text, "/")
		ids = append(ids, golden.ID{SchematicID: schematic, Version: version})
	}
	return ids
}

func TestNearest(t *testing.T) {
	for name, test := range map[string]struct {
		entries string
		asked   string
		n       int
		want    string
	}{
		"the same schematic before the same version before the others": {"zzz/v1.13.6 aaa/v2.0.0 aab/v1.13.7", "aaa/v1.13.6", 3, "aaa/v2.0.0 zzz/v1.13.6 aab/v1.13.7"},
		"a patch is nearer than a minor is nearer than a major":        {"aaa/v2.13.6 aaa/v1.14.6 aaa/v1.13.99", "aaa/v1.13.6", 3, "aaa/v1.13.99 aaa/v1.14.6 aaa/v2.13.6"},
		"versions are numbers":                                   {"aaa/v1.2.0 aaa/v1.9.0", "aaa/v1.10.0", 2, "aaa/v1.9.0 aaa/v1.2.0"},
		"the suffix counts last":                                 {"aaa/v1.14.0 aaa/v1.14.0-alpha.2 aaa/v1.14.1-alpha.1", "aaa/v1.14.0-alpha.1", 3, "aaa/v1.14.0-alpha.2 aaa/v1.14.0 aaa/v1.14.1-alpha.1"},
		"a schematic with a slip before another one":             {"gpu-amd/v1.13.6 gpu-nvidia/v1.13.6 xen/v1.13.6", "gpu-nvidai/v1.13.6", 3, "gpu-nvidia/v1.13.6 gpu-amd/v1.13.6 xen/v1.13.6"},
		"of the others, the schematic counts before the version": {"abc/v9.0.0 abc/v1.0.1 xyz/v1.0.1", "abd/v1.0.0", 3, "abc/v1.0.1 abc/v9.0.0 xyz/v1.0.1"},
		"equally near ones stay in the order of the catalog":     {"aaa/v1.13.5 aaa/v1.13.7", "aaa/v1.13.6", 2, "aaa/v1.13.5 aaa/v1.13.7"},
		"what is no semantic version is far away":                {"aaa/v01.13.6 aaa/v9.0.0", "aaa/v1.13.6", 2, "aaa/v9.0.0 aaa/v01.13.6"},
		"asked for what is no version":                           {"aaa/v1.13.6 bbb/v1.13.6", "bbb/latest", 2, "bbb/v1.13.6 aaa/v1.13.6"},
		"no more than asked for":                                 {"aaa/v1.13.5 bbb/v1.13.6", "aaa/v1.13.6", 1, "aaa/v1.13.5"},
		"no more than there are":                                 {"aaa/v1.13.5", "aaa/v1.13.6", 9, "aaa/v1.13.5"},
		"none":                                                   {"aaa/v1.13.5", "aaa/v1.13.6", 0, ""},
		"fewer than none":                                        {"aaa/v1.13.5", "aaa/v1.13.6", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var catalog Catalog
			for _, id := range pairs(strings.Fields(test.entries)...) {
				catalog.Entries = append(catalog.Entries, Entry{ID: id})
			}
			before := slices.Clone(catalog.Entries)
			if diff := cmp.Diff(pairs(strings.Fields(test.want)...), catalog.Nearest(pairs(test.asked)[0], test.n)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, catalog.Entries); diff != "" {
				t.Errorf("the catalog has changed:\n%s", diff)
			}
		})
	}
}

func TestEditDistance(t *testing.T) {
	for name, test := range map[string]struct {
		a, b string
		want int
	}{
		"equal texts":             {"abc", "abc", 0},
		"one is empty":            {"", "abc", 3},
		"one more":                {"abc", "abxc", 1},
		"one other":               {"abc", "axc", 1},
		"two that changed places": {"abcd", "acbd", 2},
		"several of each":         {"kitten", "sitting", 3},
		"what is too long is cut": {strings.Repeat("a", 500), "", comparedLimit},
	} {
		t.Run(name, func(t *testing.T) {
			if got := editDistance(test.a, test.b); got != test.want {
				t.Errorf("editDistance(a, b) = %d, want %d", got, test.want)
			}
			if got := editDistance(test.b, test.a); got != test.want {
				t.Errorf("editDistance(b, a) = %d, want %d", got, test.want)
			}
		})
	}
}
