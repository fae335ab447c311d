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

package metrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// nothing is the state of a server that has read nothing.
func nothing() State {
	return State{
		Sources:     func() []inventory.SourceHealth { return nil },
		Work:        func() inventory.Stats { return inventory.Stats{} },
		Certificate: func() []byte { return nil },
	}
}

// check compares the metrics of one name with what they are to be, without their help.
func check(t *testing.T, r *Recorder, state State, name, want string) {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(NewCollector(r, state))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	header := ""
	for _, family := range families {
		if family.GetName() == name {
			header = fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", name, family.GetHelp(), name, strings.ToLower(family.GetType().String()))
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(header+want), name); err != nil {
		t.Error(err)
	}
}

func TestSources(t *testing.T) {
	state := nothing()
	state.Sources = func() []inventory.SourceHealth {
		return []inventory.SourceHealth{
			{Name: "datavolumes", Synced: true, Readable: true, Objects: 7, LastEvent: time.UnixMilli(1790000000500), Lists: 2, Failures: 1},
			{Name: "kubernetesnodes", Lists: 3, Failures: 3},
		}
	}
	for name, want := range map[string]string{
		"workerimage_source_objects":  "workerimage_source_objects{source=\"datavolumes\"} 7\nworkerimage_source_objects{source=\"kubernetesnodes\"} 0\n",
		"workerimage_source_readable": "workerimage_source_readable{source=\"datavolumes\"} 1\nworkerimage_source_readable{source=\"kubernetesnodes\"} 0\n",
		// Of a source that was never read there is no last event.
		"workerimage_source_last_event_timestamp_seconds": "workerimage_source_last_event_timestamp_seconds{source=\"datavolumes\"} 1.7900000005e+09\n",
		"workerimage_source_lists_total":                  "workerimage_source_lists_total{source=\"datavolumes\"} 2\nworkerimage_source_lists_total{source=\"kubernetesnodes\"} 3\n",
		"workerimage_source_failures_total":               "workerimage_source_failures_total{source=\"datavolumes\"} 1\nworkerimage_source_failures_total{source=\"kubernetesnodes\"} 3\n",
	} {
		check(t, NewRecorder(), state, name, want)
	}
}

func TestProjectedObjects(t *testing.T) {
	state := nothing()
	state.Work = func() inventory.Stats {
		return inventory.Stats{Projections: 9, Published: 1, Unchanged: 2, Deferred: 3, Failed: 4}
	}
	check(t, NewRecorder(), state, "workerimage_projected_objects_total", `workerimage_projected_objects_total{result="deferred"} 3
workerimage_projected_objects_total{result="failed"} 4
workerimage_projected_objects_total{result="published"} 1
workerimage_projected_objects_total{result="unchanged"} 2
`)
}

func TestProjectionDuration(t *testing.T) {
	r, registry := NewRecorder(), metrics.NewKubeRegistry()
	for _, metric := range r.Metrics() {
		registry.MustRegister(metric)
	}
	r.Projected(time.Millisecond)
	r.Projected(3 * time.Second)
	want := `# HELP workerimage_projection_duration_seconds [ALPHA] Time that it takes to work out one image and its catalog entry from what is known.
# TYPE workerimage_projection_duration_seconds histogram
workerimage_projection_duration_seconds_bucket{le="0.0001"} 0
workerimage_projection_duration_seconds_bucket{le="0.0004"} 0
workerimage_projection_duration_seconds_bucket{le="0.0016"} 1
workerimage_projection_duration_seconds_bucket{le="0.0064"} 1
workerimage_projection_duration_seconds_bucket{le="0.0256"} 1
workerimage_projection_duration_seconds_bucket{le="0.1024"} 1
workerimage_projection_duration_seconds_bucket{le="0.4096"} 1
workerimage_projection_duration_seconds_bucket{le="1.6384"} 1
workerimage_projection_duration_seconds_bucket{le="+Inf"} 2
workerimage_projection_duration_seconds_sum 3.001
workerimage_projection_duration_seconds_count 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestLogs(t *testing.T) {
	state := nothing()
	state.Logs = map[string]func() memory.LogStats{"workerimages": func() memory.LogStats {
		return memory.LogStats{Objects: 1, ObjectBytes: 2, Window: 3, Events: 4, EventBytes: 5, ResourceVersion: 6, Published: 7, Watchers: 8, Overtaken: 9}
	}}
	for name, want := range map[string]int{
		"workerimage_log_objects":                  1,
		"workerimage_log_window_capacity":          3,
		"workerimage_log_window_events":            4,
		"workerimage_log_window_bytes":             5,
		"workerimage_log_events_total":             7,
		"workerimage_log_watchers":                 8,
		"workerimage_log_overtaken_watchers_total": 9,
	} {
		check(t, NewRecorder(), state, name, fmt.Sprintf("%s{resource=\"workerimages\"} %d\n", name, want))
	}
}

// imageIn is an image in a phase, with one condition.
func imageIn(phase images.WorkerImagePhase, condition metav1.Condition) *images.WorkerImage {
	return &images.WorkerImage{Status: images.WorkerImageStatus{Phase: phase, Conditions: []metav1.Condition{condition}}}
}

func TestImagesByPhase(t *testing.T) {
	r := NewRecorder()
	r.PublishedImage("a", imageIn(images.WorkerImageReady, metav1.Condition{}))
	r.PublishedImage("b", imageIn(images.WorkerImageImporting, metav1.Condition{}))
	r.PublishedImage("b", imageIn(images.WorkerImageReady, metav1.Condition{}))
	r.PublishedImage("c", imageIn("Sublimating", metav1.Condition{}))
	r.PublishedImage("d", imageIn(images.WorkerImageFailed, metav1.Condition{}))
	r.PublishedImage("d", nil)
	check(t, r, nothing(), "workerimage_images", `workerimage_images{phase="Failed"} 0
workerimage_images{phase="Importing"} 0
workerimage_images{phase="Other"} 1
workerimage_images{phase="Pending"} 0
workerimage_images{phase="Ready"} 2
workerimage_images{phase="Terminating"} 0
workerimage_images{phase="Unknown"} 0
`)
}

func TestConditionsOfAnImage(t *testing.T) {
	r := NewRecorder()
	r.PublishedImage("a", imageIn(images.WorkerImageImporting, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Importing"}))
	r.PublishedImage("a", imageIn(images.WorkerImageReady, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}))
	r.PublishedImage("b", imageIn(images.WorkerImageReady, metav1.Condition{Type: "Shiny", Status: "Maybe", Reason: "Polished"}))
	check(t, r, nothing(), "workerimage_image_condition", `workerimage_image_condition{condition="Ready",image="a",reason="Ready",status="True"} 1
workerimage_image_condition{condition="Other",image="b",reason="Other",status="Other"} 1
`)
}

func TestSinceWhenAnImageIsUnused(t *testing.T) {
	since := metav1.Unix(1790000000, 0)
	r := NewRecorder()
	for name, status := range map[string]metav1.ConditionStatus{
		"unused": metav1.ConditionFalse, "used": metav1.ConditionTrue, "unknown": metav1.ConditionUnknown,
	} {
		r.PublishedImage(name, imageIn(images.WorkerImageReady, metav1.Condition{Type: images.ConditionInUse, Status: status, LastTransitionTime: since}))
	}
	check(t, r, nothing(), "workerimage_image_unused_since_timestamp_seconds",
		"workerimage_image_unused_since_timestamp_seconds{image=\"unused\"} 1.79e+09\n")
}

func entry(reasons ...string) *images.CatalogEntry {
	out := &images.CatalogEntry{}
	for _, reason := range reasons {
		out.Status.Pools = append(out.Status.Pools, images.PoolStatus{Namespace: "tenant-a", Reason: reason})
	}
	return out
}

func TestPoolsByVerdict(t *testing.T) {
	r := NewRecorder()
	r.PublishedEntry("a", entry("StorageClassMatch", "StorageClassMatch", "HostAssistedCopy", projection.ReasonNotSelected))
	r.PublishedEntry("b", entry("GoldenMissing"))
	r.PublishedEntry("b", entry("StorageClassMatch", "Unheard"))
	r.PublishedEntry("c", entry("GoldenFailed"))
	r.PublishedEntry("c", nil)
	want := map[string]int{"StorageClassMatch": 3, "HostAssistedCopy": 1, other: 1}
	lines := ""
	for _, reason := range verdicts.all() {
		lines += fmt.Sprintf("workerimage_pools{reason=%q} %d\n", reason, want[reason])
	}
	check(t, r, nothing(), "workerimage_pools", lines)
}

func TestWritesByResult(t *testing.T) {
	resource := images.Resource("workerimages")
	r := NewRecorder()
	r.Wrote("create", nil)
	r.Wrote("create", apierrors.NewAlreadyExists(resource, "a"))
	r.Wrote("create", fmt.Errorf("create it: %w", apierrors.NewAlreadyExists(resource, "a")))
	r.Wrote("delete", apierrors.NewConflict(resource, "a", errors.New("in use")))
	r.Wrote("update", errors.New("no reason"))
	r.Wrote("delete", apierrors.NewMethodNotSupported(resource, "delete"))
	want := map[write]int{
		{"create", "Success"}: 1, {"create", "AlreadyExists"}: 2, {"delete", "Conflict"}: 1, {"update", other}: 1, {"delete", other}: 1,
	}
	lines := ""
	for _, verb := range verbs {
		for _, result := range writeResults.all() {
			lines += fmt.Sprintf("workerimage_writes_total{result=%q,verb=%q} %d\n", result, verb, want[write{verb, result}])
		}
	}
	check(t, r, nothing(), "workerimage_writes_total", lines)
}

func TestRefusedDeletes(t *testing.T) {
	r := NewRecorder()
	r.RefusedDelete(projection.ReasonInUse)
	r.RefusedDelete(projection.ReasonInUse)
	r.RefusedDelete("")
	check(t, r, nothing(), "workerimage_refused_deletes_total", `workerimage_refused_deletes_total{reason="InUse"} 2
workerimage_refused_deletes_total{reason="Other"} 1
workerimage_refused_deletes_total{reason="SourceNotReadable"} 0
`)
}

func TestServingCertificate(t *testing.T) {
	bundle, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := certutil.ParseCertsPEM(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		bundle []byte
		shown  bool
	}{
		{"a certificate and its authority", bundle, true},
		{"a key that comes before the certificate", append(key, bundle...), true},
		{"no certificate", nil, false},
		{"a key alone", key, false},
		{"what is no certificate", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := nothing()
			state.Certificate = func() []byte { return test.bundle }
			for name, at := range map[string]time.Time{
				"workerimage_serving_certificate_not_before_timestamp_seconds": parsed[0].NotBefore,
				"workerimage_serving_certificate_not_after_timestamp_seconds":  parsed[0].NotAfter,
			} {
				want := ""
				if test.shown {
					want = fmt.Sprintf("%s %d\n", name, at.Unix())
				}
				check(t, NewRecorder(), state, name, want)
			}
		})
	}
}
