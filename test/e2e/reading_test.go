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

package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// settledPlatform has samples that do not change any more, besides the one that never does anything else.
func settledPlatform(t *testing.T) *platform {
	t.Helper()
	p := realPlatform(t)
	for _, name := range []string{defaultSample, edgeSample, nvidiaSample} {
		p.awaitReady(t, name)
	}
	return p
}

func TestKubectlGetPrintsATable(t *testing.T) {
	p := settledPlatform(t)
	columns := []string{"NAME", "VERSION", "PHASE", "PROGRESS", "STORAGECLASS", "SIZE", "POOLS", "AGE"}
	wide := append(slices.Clone(columns), "SCHEMATIC", "CLONE", "DECLARED", "REASON", "SOURCE")

	t.Run("of all goldens and of nothing else", func(t *testing.T) {
		lines := linesOf(p.kubectl.run(t, "get", "workerimages"))
		equal(t, strings.Fields(lines[0]), columns)
		equal(t, firstCells(lines[1:]), samples)
	})
	t.Run("of one by its name", func(t *testing.T) {
		lines := linesOf(p.kubectl.run(t, "get", "workerimage", nvidiaSample))
		equal(t, strings.Fields(lines[1])[:7], []string{nvidiaSample, objects.Release, "Ready", "100%", "replicated", "6Gi", "2"})
	})
	t.Run("with more columns when it is wide", func(t *testing.T) {
		lines := linesOf(p.kubectl.run(t, "get", "workerimages", nvidiaSample, classlessSample, "-o", "wide"))
		equal(t, strings.Fields(lines[0]), wide)
		cells := strings.Fields(lines[1])
		equal(t, cells[8:], []string{"gpu-nvidia", "csi-clone", "true", "Ready", objects.ImageURL("gpu-nvidia")})
		equal(t, slices.Contains(strings.Fields(lines[2]), "StorageClassNotFound"), true)
	})
	t.Run("of the short name", func(t *testing.T) {
		equal(t, firstCells(linesOf(p.kubectl.run(t, "get", "wi", "--no-headers"))), samples)
	})
	t.Run("of the category", func(t *testing.T) {
		lines := linesOf(p.kubectl.run(t, "get", "cozystack", "-o", "name"))
		for _, name := range samples {
			equal(t, slices.Contains(lines, "workerimage.images.cozystack.io/"+name), true)
		}
	})
	t.Run("in an order of the user's", func(t *testing.T) {
		lines := linesOf(p.kubectl.run(t, "get", "workerimages", "--no-headers", "--sort-by={.spec.version}"))
		equal(t, firstCells(lines)[len(samples)-1], slowSample)
	})
}

func TestKubectlGetPrintsObjects(t *testing.T) {
	p := settledPlatform(t)
	want, err := p.images.Get(t.Context(), nvidiaSample, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want.Kind, want.APIVersion = "WorkerImage", v1alpha1.SchemeGroupVersion.String()
	for _, format := range []string{"yaml", "json"} {
		t.Run("as "+format, func(t *testing.T) {
			got := &v1alpha1.WorkerImage{}
			if err := yaml.UnmarshalStrict([]byte(p.kubectl.run(t, "get", "workerimage", nvidiaSample, "-o", format)), got); err != nil {
				t.Fatal(err)
			}
			equal(t, got, want)
		})
	}
	t.Run("as names", func(t *testing.T) {
		lines := linesOf(p.kubectl.run(t, "get", "workerimages", "-o", "name"))
		equal(t, lines[0], "workerimage.images.cozystack.io/"+defaultSample)
	})
}

func TestKubectlDescribeShowsTheWholeStatus(t *testing.T) {
	p := settledPlatform(t)
	got := p.kubectl.run(t, "describe", "workerimage", nvidiaSample)
	// kubectl before 1.36 writes the name of the field so.
	got = strings.Replace(got, "Schematic Id:", "Schematic ID:", 1)
	for _, want := range []string{nvidiaSample, "Schematic ID:  gpu-nvidia", "Clone Strategy:  csi-clone", "DeclaredByPools", "staging-small", "DiskTooSmall"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestKubectlExplainKnowsEveryField(t *testing.T) {
	p := realPlatform(t)
	for _, format := range []string{"plaintext", "plaintext-openapiv2"} {
		t.Run(format, func(t *testing.T) {
			all := p.kubectl.run(t, "explain", "workerimage", "--recursive", "--output="+format)
			for _, field := range []string{"schematicID", "restartCount", "cloneStrategy", "accessModes", "lastTransitionTime", "minReplicas", "kubernetesVersion", "drift"} {
				if !strings.Contains(all, field) {
					t.Errorf("field %s is not in\n%s", field, all)
				}
			}
			status := p.kubectl.run(t, "explain", "workerimage.status.pools", "--recursive", "--output="+format)
			if !strings.Contains(status, "node pools that consume the image") {
				t.Errorf("no description in\n%s", status)
			}
			// Definitions of all servers are merged into one document, which one bad name makes useless for everybody.
			if deployment := p.kubectl.run(t, "explain", "deployment", "--output="+format); !strings.Contains(deployment, "Deployment enables declarative updates") {
				t.Errorf("Deployment is explained as\n%s", deployment)
			}
		})
	}
}

var escapedSlash = regexp.MustCompile(`"\$ref":"[^"]*~1[^"]*"`)

func TestModelNamesCanBeReferredTo(t *testing.T) {
	p := realPlatform(t)
	for version, path := range map[string]string{"v2": "/openapi/v2", "v3": "/openapi/v3" + group} {
		t.Run(version, func(t *testing.T) {
			a := p.wire.Get(t, path, wire.JSON)
			var document struct {
				Definitions map[string]any `json:"definitions"`
				Components  struct {
					Schemas map[string]any `json:"schemas"`
				} `json:"components"`
			}
			a.Decode(t, &document)
			models := document.Definitions
			if models == nil {
				models = document.Components.Schemas
			}
			found := false
			for name := range models {
				found = found || strings.HasSuffix(name, ".WorkerImage")
				if strings.Contains(name, "/") {
					t.Errorf("a slash in %s", name)
				}
			}
			if !found {
				t.Errorf("no model of a WorkerImage")
			}
			if reference := escapedSlash.Find(a.Body); reference != nil {
				t.Errorf("an escaped slash in %s", reference)
			}
		})
	}
}

func TestSelectors(t *testing.T) {
	p := settledPlatform(t)
	for _, test := range []struct {
		name string
		args []string
		want []string
	}{
		{"a name", []string{"--field-selector=metadata.name=" + edgeSample}, []string{edgeSample}},
		{"a schematic that is too long for a label", []string{"--field-selector=spec.schematicID=ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"}, []string{defaultSample}},
		{"a version", []string{"--field-selector=spec.version=v1.13.7"}, []string{slowSample}},
		{"a phase", []string{"--field-selector=status.phase=Pending"}, []string{classlessSample}},
		{"a class", []string{"--field-selector=status.storageClass.effective=local"}, []string{edgeSample}},
		{"two fields", []string{"--field-selector=spec.version=v1.13.6,status.phase=Ready"}, []string{defaultSample, edgeSample, nvidiaSample}},
		{"not a field", []string{"--field-selector=spec.version!=v1.13.6"}, []string{slowSample}},
		{"a label that no image has", []string{"-l", "app.kubernetes.io/managed-by=cozystack"}, nil},
		{"the absence of a label", []string{"-l", "!app.kubernetes.io/managed-by"}, samples},
	} {
		t.Run(test.name, func(t *testing.T) {
			output := p.kubectl.run(t, append([]string{"get", "workerimages", "-o", "name"}, test.args...)...)
			got := linesOf(strings.ReplaceAll(output, "workerimage.images.cozystack.io/", ""))
			equal(t, got, test.want)
		})
	}
	t.Run("a field that is not served is refused", func(t *testing.T) {
		said := p.kubectl.refused(t, "get", "workerimages", "--field-selector=status.progress=100")
		if !strings.Contains(said, "(BadRequest)") || !strings.Contains(said, "status.progress") {
			t.Error(said)
		}
		for _, query := range []string{"?fieldSelector=status.progress%3D100", "?watch=1&fieldSelector=status.progress%3D100"} {
			if a := p.wire.Get(t, workerImages+query, wire.JSON); a.Status != http.StatusBadRequest {
				t.Errorf("%s: the answer is %d: %s", query, a.Status, a.Body)
			}
		}
	})
}

func TestAnImageThatIsMissingIsNotFound(t *testing.T) {
	p := realPlatform(t)
	said := p.kubectl.refused(t, "get", "workerimage", "talos-worker-missing-v1.0.0")
	if want := `Error from server (NotFound): workerimages.images.cozystack.io "talos-worker-missing-v1.0.0" not found`; strings.TrimSpace(said) != want {
		t.Errorf("got %s, want %s", said, want)
	}
	var status metav1.Status
	a := p.wire.Get(t, workerImages+"/talos-worker-missing-v1.0.0", wire.JSON)
	if a.Status != http.StatusNotFound {
		t.Errorf("the answer is %d", a.Status)
	}
	a.Status = http.StatusOK
	a.Decode(t, &status)
	equal(t, status.Reason, metav1.StatusReasonNotFound)
	equal(t, status.Details, &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "workerimages", Name: "talos-worker-missing-v1.0.0"})
}

func TestKubectlReadsInChunks(t *testing.T) {
	p := settledPlatform(t)
	output, log, err := p.kubectl.try(t.Context(), "", "get", "workerimages", "-o", "name", "--chunk-size=2", "-v=6")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, len(linesOf(output)), len(samples))
	if requests := strings.Count(log, "limit=2"); requests != len(samples)/2 {
		t.Errorf("%d requests for %d images by two:\n%s", requests, len(samples), log)
	}
}

func TestKubectlWatchesWhatMatches(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	name := objects.NameOf("passing")
	printed := p.kubectl.follow(t, "get", "workerimages", "--watch", "--output-watch-events",
		"--field-selector=status.phase=Importing,spec.schematicID=passing")
	all := p.watch(t, "&fieldSelector=metadata.name="+name, wire.JSON)
	p.createGolden(t, objects.NewGolden("passing"))
	lines := printed.until(t, name+" to leave", func(line string) bool { return strings.HasPrefix(line, "DELETED") })
	untilReady(t, all)
	events := lines[1:]
	for i, line := range events {
		cells := strings.Fields(line)
		equal(t, cells[1], name)
		equal(t, cells[3], "Importing")
		switch {
		case i == 0:
			equal(t, cells[0], "ADDED")
		case i < len(events)-1:
			equal(t, cells[0], "MODIFIED")
		}
	}
}

func linesOf(output string) []string {
	if output = strings.TrimSpace(output); output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

func firstCells(lines []string) []string {
	var cells []string
	for _, line := range lines {
		cells = append(cells, strings.Fields(line)[0])
	}
	return cells
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
