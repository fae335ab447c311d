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

package cases

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryCaseIsLoaded(t *testing.T) {
	all, err := LoadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(all), 14; got != want {
		t.Errorf("got %d cases, want %d", got, want)
	}
}

func TestACaseThatCannotBeCheckedIsRefused(t *testing.T) {
	const dir = "39-empty-string-class"
	for _, tc := range []struct {
		name     string
		file     string
		old, new string
		want     string
	}{
		{"an unknown key of expect", "want.yaml", "    inUse: 'True'", "    inUsed: 'True'", `unknown field "inUsed"`},
		{"an unknown key inside a key", "want.yaml", "disks: {cloned:", "disks: {clones:", `unknown field "clones"`},
		{"an unknown key of the data volume", "want.yaml", "dataVolume:\n      phase:", "dataVolume:\n      phrase:", `unknown field "phrase"`},
		{"an unknown key of a checkpoint", "want.yaml", "- after: 6\n", "- before: 6\n", `unknown field "before"`},
		{"an unknown rule", "want.yaml", "id: no-token", "id: no-tokens", `unknown rule "no-tokens"`},
		{"an empty list of alternatives", "want.yaml", "poolCloneable: [Unknown, 'False']", "poolCloneable: []", "an empty list of alternatives"},
		{"a checkpoint after the last event", "want.yaml", "- after: 7\n", "- after: 8\n", "no event 8 from here on"},
		{"a checkpoint before the one before", "want.yaml", "- after: 7\n", "- after: 5\n", "no event 5 from here on"},
		{"a checkpoint for an unknown golden", "want.yaml", "absent: talos-worker-emptyclass", "absent: talos-worker-other", "none of the goldens"},
		{"a file of another case", "want.yaml", "case: 39-", "case: 40-", "is for case"},
		{"an event of an unknown type", "timeline.jsonl", `"event":"MODIFIED"`, `"event":"BOOKMARK"`, "unknown type"},
		{"events out of order", "timeline.jsonl", `"i":7`, `"i":8`, "out of order"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := fstest.MapFS{}
			for _, file := range []string{"timeline.jsonl", "want.yaml"} {
				data, err := fs.ReadFile(testdata, "testdata/"+dir+"/"+file)
				if err != nil {
					t.Fatal(err)
				}
				if file == tc.file {
					changed := strings.Replace(string(data), tc.old, tc.new, 1)
					if changed == string(data) {
						t.Fatalf("%s has no %q", file, tc.old)
					}
					data = []byte(changed)
				}
				files[dir+"/"+file] = &fstest.MapFile{Data: data}
			}
			_, err := load(files, dir)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}
