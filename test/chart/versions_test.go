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

package chart

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	// modules holds a module for each control plane that the tests can run on.
	modules    = "../../hack/stack/kubernetes*/go.mod"
	nightly    = "../../.github/workflows/nightly.yaml"
	operations = "../../docs/operations.md"
)

// supported are the minors that there are control planes of, oldest first.
func supported(t *testing.T) []*version.Version {
	t.Helper()
	files, err := filepath.Glob(modules)
	if err != nil {
		t.Fatal(err)
	}
	var minors []*version.Version
	for _, file := range files {
		pinned := regexp.MustCompile(`k8s\.io/kubernetes v(1\.\d+)\.`).FindSubmatch(read(t, file))
		if pinned == nil {
			t.Fatalf("%s is for no Kubernetes", file)
		}
		minors = append(minors, version.MustParseGeneric(string(pinned[1])))
	}
	slices.SortFunc(minors, func(a, b *version.Version) int { return int(a.Minor()) - int(b.Minor()) })
	return minors
}

func TestTheChartIsForTheVersionsThatAreTested(t *testing.T) {
	minors := supported(t)
	var about struct{ KubeVersion string }
	if err := yaml.Unmarshal(read(t, filepath.Join(chart, "Chart.yaml")), &about); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(">=%s.0-0", minors[0]); about.KubeVersion != want {
		t.Errorf("it is for %s, and the oldest that is tested makes it %s", about.KubeVersion, want)
	}
	if _, err := helm("template", name, chart, "--kube-version", minors[0].OffsetMinor(-1).String()+".9"); err == nil {
		t.Error("helm renders it for an older one")
	}
	for _, minor := range minors[:len(minors)-1] {
		if want := fmt.Sprintf("{target: compatibility, kubernetes: %q}", minor); !bytes.Contains(read(t, nightly), []byte(want)) {
			t.Errorf("%s is not tested every night: no %s", minor, want)
		}
	}
	for _, minor := range minors {
		if !bytes.Contains(read(t, operations), fmt.Appendf(nil, "\n| Kubernetes %s |", minor)) {
			t.Errorf("the page on operations does not say how often %s is tested", minor)
		}
	}
}

// otherGroups are the kinds that Kubernetes' scheme does not have: that of the aggregator, which all versions serve, and those of
// projects with versions of their own.
var otherGroups = sets.New(
	runtimeschema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"},
	runtimeschema.GroupVersion{Group: "cert-manager.io", Version: "v1"},
	runtimeschema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"},
)

func TestEveryKindIsServedByEveryVersion(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no values to test with", err)
	}
	files = append(files, filepath.Join(chart, "values.yaml"))
	for _, minor := range supported(t) {
		for _, values := range files {
			t.Run(fmt.Sprintf("%s/%s", minor, filepath.Base(values)), func(t *testing.T) {
				for _, object := range render(t, "--values", values, "--kube-version", minor.String()+".0") {
					if err := servedBy(minor, object.GroupVersionKind()); err != nil {
						t.Errorf("%s: %v", object.GetName(), err)
					}
				}
			})
		}
	}
}

// servedBy says why a version does not serve a kind.
func servedBy(minor *version.Version, kind runtimeschema.GroupVersionKind) error {
	if otherGroups.Has(kind.GroupVersion()) {
		return nil
	}
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return err
	}
	since, ok := object.(interface{ APILifecycleIntroduced() (int, int) })
	if !ok {
		return fmt.Errorf("nobody knows which version serves %s", kind)
	}
	if major, introduced := since.APILifecycleIntroduced(); minor.LessThan(version.MajorMinor(uint(major), uint(introduced))) {
		return fmt.Errorf("%s is served since %d.%d", kind, major, introduced)
	}
	if until, ok := object.(interface{ APILifecycleRemoved() (int, int) }); ok {
		if major, removed := until.APILifecycleRemoved(); minor.AtLeast(version.MajorMinor(uint(major), uint(removed))) {
			return fmt.Errorf("%s is served no longer since %d.%d", kind, major, removed)
		}
	}
	return nil
}

func TestTheVersionsOfAKindAreKnown(t *testing.T) {
	for _, test := range []struct {
		name, minor string
		kind        runtimeschema.GroupVersionKind
		served      bool
	}{
		{"a kind that always was there", "1.35", runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, true},
		{"a kind that is newer", "1.35", runtimeschema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"}, false},
		{"a kind that has come", "1.36", runtimeschema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"}, true},
		{"a kind that has gone", "1.35", runtimeschema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}, false},
		{"a kind of nobody", "1.35", runtimeschema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := servedBy(version.MustParseGeneric(test.minor), test.kind); (err == nil) != test.served {
				t.Errorf("got %v", err)
			}
		})
	}
}
