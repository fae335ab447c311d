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

package catalogreport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

var name = types.NamespacedName{Namespace: "cozy-public", Name: "worker-image-catalog"}

// recorder remembers Events.
type recorder struct {
	objects []runtime.Object
	events  []string
}

func (r *recorder) Event(object runtime.Object, kind, reason, message string) {
	r.objects = append(r.objects, object)
	r.events = append(r.events, kind+" "+reason+" "+message)
}

func (r *recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(object, kind, reason, format, args...)
}

func reportOf(t *testing.T, document string) inventory.CatalogReport {
	t.Helper()
	parsed, err := catalog.Parse([]byte(document))
	if err != nil {
		return inventory.CatalogReport{UID: "uid", Err: err.Error(), Catalog: catalog.Empty()}
	}
	return inventory.CatalogReport{UID: "uid", Catalog: parsed}
}

func images(entries ...string) string { return "images:\n- " + strings.Join(entries, "\n- ") + "\n" }

func TestEveryFaultOfACatalogIsAnEventOnItsConfigMap(t *testing.T) {
	const good = "{schematicID: aaa, version: v1.13.6}"
	for _, test := range []struct {
		name     string
		document string
		want     []string
	}{
		{"a catalog without a fault", images(good), nil},
		{"a text that is no catalog", "images: {", []string{"Warning CatalogInvalid not a catalog: "}},
		{"an entry that is rejected", images(good, "{schematicID: bbb, version: v1.13}"), []string{"Warning CatalogEntryRejected images[1].version"}},
		{"an entry that is there twice", images(good, good), []string{
			"Warning CatalogEntryRejected images[0] ", "Warning CatalogEntryRejected images[1] ",
		}},
		{"a key that nothing reads", images(good) + "nonsense: 1", []string{`Warning CatalogWarning unknown key "nonsense"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := &recorder{}
			New(name, recorder).Report(t.Context(), reportOf(t, test.document))
			if len(recorder.events) != len(test.want) {
				t.Fatalf("events %q, want %q", recorder.events, test.want)
			}
			object := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: name.Namespace, Name: name.Name, UID: "uid"}
			for i, want := range test.want {
				if !strings.HasPrefix(recorder.events[i], want) {
					t.Errorf("event %q, want %q", recorder.events[i], want)
				}
				if diff := cmp.Diff(&object, recorder.objects[i]); diff != "" {
					t.Errorf("on another object (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestOfManyFaultsAFewAreEvents(t *testing.T) {
	bad := make([]string, 0, 100)
	for i := range 100 {
		bad = append(bad, fmt.Sprintf("{schematicID: a%d, version: v1}", i))
	}
	recorder := &recorder{}
	New(name, recorder).Report(t.Context(), reportOf(t, images(bad...)))
	if len(recorder.events) != eventLimit+1 {
		t.Fatalf("%d events", len(recorder.events))
	}
	if last := recorder.events[eventLimit]; !strings.Contains(last, "and 95 more") {
		t.Errorf("the last one does not say how many more: %s", last)
	}
}

func TestALongFaultIsCut(t *testing.T) {
	report := inventory.CatalogReport{UID: "uid", Err: strings.Repeat("x", 10*messageLimit), Catalog: catalog.Empty()}
	recorder := &recorder{}
	New(name, recorder).Report(t.Context(), report)
	if got := len(recorder.events[0]); got > messageLimit+100 {
		t.Errorf("an event of %d bytes", got)
	}
}

func TestWithoutARecorderNothingIsRecorded(t *testing.T) {
	New(name, nil).Report(t.Context(), reportOf(t, "images: {"))
}

func TestMetrics(t *testing.T) {
	for _, test := range []struct {
		name, document            string
		accepted, rejected, valid int
	}{
		{"an empty catalog", "", 0, 0, 1},
		{"two entries and a bad one", images("{schematicID: a, version: v1.0.0}", "{schematicID: b, version: v1.0.0}", "{schematicID: c}"), 2, 1, 1},
		{"no catalog", "images: {", 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			reporter, registry := New(name, nil), metrics.NewKubeRegistry()
			for _, metric := range reporter.Metrics() {
				registry.MustRegister(metric)
			}
			reporter.Report(t.Context(), reportOf(t, test.document))
			want := fmt.Sprintf(`# HELP workerimage_catalog_entries [ALPHA] Entries of the catalog in force, by whether they are accepted or rejected.
# TYPE workerimage_catalog_entries gauge
workerimage_catalog_entries{state="accepted"} %d
workerimage_catalog_entries{state="rejected"} %d
# HELP workerimage_catalog_valid [ALPHA] 1 if the catalog is absent or was read, 0 if it does not parse and the last good one is in force.
# TYPE workerimage_catalog_valid gauge
workerimage_catalog_valid %d
`, test.accepted, test.rejected, test.valid)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Error(err)
			}
		})
	}
}
