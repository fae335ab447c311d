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

package selection

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
)

func some() []v1alpha1.WorkerImage {
	return []v1alpha1.WorkerImage{
		*imagestest.Image("gpu", "v1.9.9"),
		*imagestest.Image("gpu", "v1.13.10"),
		*imagestest.Image("gpu", "v1.13.9", imagestest.OnClass("local")),
		*imagestest.Image("gpu", "v1.14.0-alpha.1"),
		*imagestest.Image("gpu", "v1.13.11", imagestest.Importing(40)),
		*imagestest.Image("edge", "v1.13.10"),
		*imagestest.Image("broken", "nightly"),
	}
}

func constraints(t *testing.T, text string) version.Constraints {
	t.Helper()
	parsed, err := version.NewConstraint(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestImagesStandNewestFirst(t *testing.T) {
	for name, test := range map[string]struct {
		query Query
		want  []string
	}{
		"without a filter all do, and what is no version comes last": {Query{},
			[]string{"gpu-v1.14.0-alpha.1", "gpu-v1.13.11", "edge-v1.13.10", "gpu-v1.13.10", "gpu-v1.13.9", "gpu-v1.9.9", "broken-nightly"}},
		"a schematic selects its images": {Query{SchematicID: "edge"}, []string{"edge-v1.13.10"}},
		"a version selects exactly":      {Query{Version: "v1.13.10"}, []string{"edge-v1.13.10", "gpu-v1.13.10"}},
		"a constraint leaves pre-releases and what is no version out": {Query{Constraints: constraints(t, ">= 1.13.10")},
			[]string{"gpu-v1.13.11", "edge-v1.13.10", "gpu-v1.13.10"}},
		"a constraint that names a pre-release takes it": {Query{Constraints: constraints(t, ">= 1.14.0-alpha.0")}, []string{"gpu-v1.14.0-alpha.1"}},
		"a class is the one in effect":                   {Query{StorageClass: "local"}, []string{"gpu-v1.13.9"}},
		"ready only leaves out what is being imported":   {Query{SchematicID: "gpu", ReadyOnly: true, Constraints: constraints(t, "~> 1.13.0")}, []string{"gpu-v1.13.10", "gpu-v1.13.9"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(test.query.Images(some()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOneImageIsMeantOrNone(t *testing.T) {
	for name, test := range map[string]struct {
		query Query
		want  string
		says  []string
	}{
		"one match is it":            {query: Query{SchematicID: "edge"}, want: "edge-v1.13.10"},
		"the most recent of several": {query: Query{SchematicID: "gpu", ReadyOnly: true, Constraints: constraints(t, "~> 1.13.0"), MostRecent: true}, want: "gpu-v1.13.10"},
		"several are an error that lists them and a way out": {query: Query{SchematicID: "gpu", Constraints: constraints(t, "~> 1.13.0")},
			says: []string{"3 worker images match", "talos-worker-gpu-v1.13.11 (Importing, replicated)", "talos-worker-gpu-v1.13.9 (Ready, local)", "most_recent = true"}},
		"two of the newest version are an error that lists only them": {query: Query{Version: "v1.13.10", MostRecent: true},
			says: []string{"2 worker images match", "talos-worker-edge-v1.13.10", "talos-worker-gpu-v1.13.10", "same version"}},
		"no match is an error that lists what exists": {query: Query{SchematicID: "zfs"},
			says: []string{`schematic_id = "zfs"`, "These exist", "talos-worker-edge-v1.13.10"}},
		"no match for want of readiness says so": {query: Query{Version: "v1.13.11", ReadyOnly: true},
			says: []string{"not ready", "talos-worker-gpu-v1.13.11 (Importing, replicated)"}},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := test.query.One(some())
			if test.want != "" {
				if err != nil || "talos-worker-"+test.want != image.Name {
					t.Fatalf("got %v, %v; want %s", image, err, test.want)
				}
				return
			}
			for _, text := range test.says {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("no %q in: %v", text, err)
				}
			}
		})
	}
}

func TestAnErrorListsOnlyWhatCanBeRead(t *testing.T) {
	var many []v1alpha1.WorkerImage
	for _, patch := range strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11") {
		many = append(many, *imagestest.Image("gpu", "v1.13."+patch))
	}
	_, err := Query{}.One(many)
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || !strings.Contains(err.Error(), "and 2 more") || strings.Contains(err.Error(), "v1.13.1 ") {
		t.Errorf("got %v", err)
	}
}

func TestEntriesStandNewestFirst(t *testing.T) {
	entry := func(schematicID, version string) v1alpha1.CatalogEntry {
		e := v1alpha1.CatalogEntry{Spec: v1alpha1.CatalogEntrySpec{SchematicID: schematicID, Version: version}}
		e.Name = "talos-worker-" + schematicID + "-" + version
		return e
	}
	all := []v1alpha1.CatalogEntry{entry("gpu", "v1.13.9"), entry("gpu", "v1.13.10"), entry("edge", "v1.13.10"), entry("gpu", "v1.14.0")}
	var got []string
	for _, e := range Entries(all, "gpu", constraints(t, "~> 1.13.0")) {
		got = append(got, e.Name)
	}
	if diff := cmp.Diff([]string{"talos-worker-gpu-v1.13.10", "talos-worker-gpu-v1.13.9"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheNearestNamesComeFirst(t *testing.T) {
	got := Nearest("talos-worker-gpu-v1.13.12", some(), 3)
	want := []string{"talos-worker-gpu-v1.13.10", "talos-worker-gpu-v1.13.11", "talos-worker-gpu-v1.13.9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Nearest("anything", nil, 3); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}

func names(images []v1alpha1.WorkerImage) []string {
	var short []string
	for _, image := range images {
		short = append(short, strings.TrimPrefix(image.Name, "talos-worker-"))
	}
	return short
}
