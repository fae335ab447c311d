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

package backend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// labelled is the image with one label.
func labelled(before *images.WorkerImage, value string) *images.WorkerImage {
	after := before.DeepCopy()
	after.Labels = map[string]string{"team": value}
	return after
}

func TestAnUpdateChangesOneAnnotationOfTheGolden(t *testing.T) {
	f := newFixture()
	before := f.golden(t)
	want := f.dataVolumes.objects[name].DeepCopy()
	after := labelled(before, "a")
	if _, err := f.Update(t.Context(), "", before, after); err != nil {
		t.Fatal(err)
	}
	got := f.dataVolumes.objects[name]
	if kept := golden.DataVolumeFrom(got.Object).Metadata; kept.Labels["team"] != "a" {
		t.Errorf("kept %v", kept)
	}
	annotations := want.GetAnnotations()
	annotations[golden.MetadataAnnotation] = got.GetAnnotations()[golden.MetadataAnnotation]
	want.SetAnnotations(annotations)
	want.SetResourceVersion(got.GetResourceVersion())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the DataVolume (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"datavolumes " + name + " " + got.GetResourceVersion()}, f.observer.awaited); diff != "" {
		t.Errorf("waits for (-want +got):\n%s", diff)
	}
}

// Another CDI or another Kubernetes than this server knows has other fields.
func TestAnUpdateKeepsFieldsThatNobodyHereKnows(t *testing.T) {
	for of, published := range everyGolden {
		t.Run(of, func(t *testing.T) {
			f := newFixture()
			before := published(f, t)
			stored := f.of(before).objects[name]
			for _, path := range []string{"spec", "spec.source.http", "spec.storage.resources", "status", "metadata", "future"} {
				addUnknown(t, stored, strings.Split(path, ".")...)
			}
			want := stored.DeepCopy()
			if _, err := f.Update(t.Context(), "", before, labelled(before, "a")); err != nil {
				t.Fatal(err)
			}
			got := f.of(before).objects[name]
			annotations := want.GetAnnotations()
			annotations[golden.MetadataAnnotation] = `{"labels":{"team":"a"}}`
			want.SetAnnotations(annotations)
			want.SetResourceVersion(got.GetResourceVersion())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// addUnknown adds a field of no type to a part of an object.
func addUnknown(t *testing.T, o *unstructured.Unstructured, path ...string) {
	t.Helper()
	value := map[string]any{"text": "x", "number": int64(1), "list": []any{map[string]any{"nested": true}}}
	if err := unstructured.SetNestedField(o.Object, value, append(path, "unknown")...); err != nil {
		t.Fatal(err)
	}
}

func TestTheAnnotationGoesWithTheLastLabel(t *testing.T) {
	f := newFixture()
	before := f.golden(t)
	after := labelled(before, "a")
	if _, err := f.Update(t.Context(), "", before, after); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Update(t.Context(), "", after, before); err != nil {
		t.Fatal(err)
	}
	if value, there := f.dataVolumes.objects[name].GetAnnotations()[golden.MetadataAnnotation]; there {
		t.Errorf("it is still there: %s", value)
	}
}

func TestAClaimWithoutADataVolumeKeepsTheLabels(t *testing.T) {
	f := newFixture()
	before := f.bareClaim()
	if _, err := f.Update(t.Context(), "", before, labelled(before, "a")); err != nil {
		t.Fatal(err)
	}
	if len(f.dataVolumes.writes) != 0 || len(f.claims.writes) != 1 {
		t.Fatalf("writes %v and %v", f.dataVolumes.writes, f.claims.writes)
	}
	claim := f.claims.objects[name]
	if got, want := claim.GetAnnotations()[golden.MetadataAnnotation], `{"labels":{"team":"a"}}`; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"claims " + name + " " + claim.GetResourceVersion()}, f.observer.awaited); diff != "" {
		t.Errorf("waits for (-want +got):\n%s", diff)
	}
}

func TestAGoldenWithoutAnnotationsCanBeLabelled(t *testing.T) {
	f := newFixture()
	before := f.bareClaim()
	f.claims.objects[name].SetAnnotations(nil)
	before.UID = golden.UID(nil, &golden.Claim{UID: f.claims.objects[name].GetUID()})
	if _, err := f.Update(t.Context(), "", before, labelled(before, "a")); err != nil {
		t.Fatal(err)
	}
	if kept := f.claims.objects[name].GetAnnotations(); len(kept) != 1 {
		t.Errorf("annotations %v, want one", kept)
	}
}

func TestWhatIsTooLargeToKeepIsNotWritten(t *testing.T) {
	f := newFixture()
	before := f.golden(t)
	after := before.DeepCopy()
	after.Annotations = map[string]string{"note": strings.Repeat("x", golden.MetadataLimit)}
	if _, err := f.Update(t.Context(), "", before, after); !apierrors.IsBadRequest(err) {
		t.Errorf("update: got %v", err)
	}
	created := image()
	created.Annotations = after.Annotations
	if _, err := newFixture().Create(t.Context(), "", created); !apierrors.IsBadRequest(err) {
		t.Errorf("create: got %v", err)
	}
	if len(f.dataVolumes.writes) != 0 {
		t.Errorf("writes %v", f.dataVolumes.writes)
	}
}

func TestADryRunOfAnUpdateIsOneInTheClusterToo(t *testing.T) {
	for what, published := range everyGolden {
		t.Run(what, func(t *testing.T) {
			f := newFixture()
			before := published(f, t)
			version := f.versions()
			if err := f.DryRunUpdate(t.Context(), before, labelled(before, "a")); err != nil {
				t.Fatal(err)
			}
			writes := f.of(before).writes
			if len(writes) != 1 || writes[0].verb != "update" || !writes[0].dryRun {
				t.Errorf("writes %v, want one rehearsal", writes)
			}
			if f.versions() != version || len(f.observer.awaited) != 0 {
				t.Errorf("it changes something, or waits for %v", f.observer.awaited)
			}
		})
	}
}

// everyGolden are the objects that an image stands for.
var everyGolden = map[string]func(*fixture, *testing.T) *images.WorkerImage{
	"a DataVolume": (*fixture).golden,
	"a claim":      func(f *fixture, _ *testing.T) *images.WorkerImage { return f.bareClaim() },
}

func (f *fixture) versions() [2]int { return [2]int{f.dataVolumes.version, f.claims.version} }

// of is the cluster that holds the golden of an image.
func (f *fixture) of(image *images.WorkerImage) *cluster {
	if image.Status.DataVolume != nil {
		return f.dataVolumes
	}
	return f.claims
}

// changes are what may become of a golden that an image still shows as it was.
var changes = map[string]func(*cluster){
	"is gone":           func(c *cluster) { delete(c.objects, name) },
	"is another by now": func(c *cluster) { c.replace(name) },
}

// A conflict has the storage try again on what is published by then.
func TestAnUpdateOfAGoldenThatChangedIsAConflict(t *testing.T) {
	labelledByAnother := func(c *cluster) {
		o := c.objects[name].DeepCopy()
		o.SetAnnotations(map[string]string{golden.MetadataAnnotation: `{"labels":{"team":"b"}}`})
		c.put(o)
	}
	for of, published := range everyGolden {
		for what, change := range changes {
			t.Run(of+" that "+what, func(t *testing.T) {
				testUpdateConflict(t, published, change, false)
			})
			t.Run(of+" that "+what+" when it is written", func(t *testing.T) {
				testUpdateConflict(t, published, change, true)
			})
		}
		t.Run(of+" that has other labels", func(t *testing.T) {
			testUpdateConflict(t, published, labelledByAnother, false)
		})
		t.Run(of+" that has other labels when it is written", func(t *testing.T) {
			testUpdateConflict(t, published, labelledByAnother, true)
		})
	}
}

func testUpdateConflict(t *testing.T, published func(*fixture, *testing.T) *images.WorkerImage, change func(*cluster), late bool) {
	t.Helper()
	f := newFixture()
	before := published(f, t)
	cluster := f.of(before)
	if late {
		cluster.meanwhile = func() { change(cluster) }
	} else {
		change(cluster)
	}
	_, err := f.Update(t.Context(), "", before, labelled(before, "a"))
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if len(cluster.writes) != 0 || len(f.observer.awaited) != 0 {
		t.Errorf("writes %v, waits for %v", cluster.writes, f.observer.awaited)
	}
}

// CDI changes a golden several times a second while it is imported.
func TestADryRunIsTriedAgainOnAGoldenThatHasJustChanged(t *testing.T) {
	for of, published := range everyGolden {
		t.Run(of, func(t *testing.T) {
			f := newFixture()
			before := published(f, t)
			cluster := f.of(before)
			once := func() {
				cluster.meanwhile = nil
				cluster.put(cluster.objects[name].DeepCopy())
			}
			cluster.meanwhile = once
			if err := f.DryRunUpdate(t.Context(), before, labelled(before, "a")); err != nil {
				t.Errorf("update: %v", err)
			}
			cluster.meanwhile = once
			if err := f.DryRunDelete(t.Context(), before); err != nil {
				t.Errorf("delete: %v", err)
			}
			cluster.replace(name)
			if err := f.DryRunDelete(t.Context(), before); !apierrors.IsConflict(err) {
				t.Errorf("delete of another: %v", err)
			}
		})
	}
}
