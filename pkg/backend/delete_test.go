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
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

func TestADeletionDeletesWhatTheImageStandsFor(t *testing.T) {
	for what, published := range everyGolden {
		t.Run(what, func(t *testing.T) {
			f := newFixture()
			image := published(f, t)
			if _, err := f.Delete(t.Context(), "", image); err != nil {
				t.Fatal(err)
			}
			if len(f.of(image).objects) != 0 {
				t.Errorf("it is still there: %v", f.of(image).objects)
			}
			if len(f.dataVolumes.writes)+len(f.claims.writes) != 1 {
				t.Errorf("writes %v and %v, want one", f.dataVolumes.writes, f.claims.writes)
			}
		})
	}
}

func TestADryRunOfADeletionIsOneInTheClusterToo(t *testing.T) {
	for what, published := range everyGolden {
		t.Run(what, func(t *testing.T) {
			f := newFixture()
			image := published(f, t)
			if err := f.DryRunDelete(t.Context(), image); err != nil {
				t.Fatal(err)
			}
			if writes := f.of(image).writes; len(writes) != 1 || !writes[0].dryRun {
				t.Errorf("writes %v, want one rehearsal", writes)
			}
			if len(f.of(image).objects) != 1 {
				t.Error("it is gone")
			}
		})
	}
}

func TestADeletionIsAnsweredWhenItShows(t *testing.T) {
	f := newFixture()
	image := f.golden(t)
	visible, err := f.Delete(t.Context(), "", image)
	if err != nil {
		t.Fatal(err)
	}
	terminating, another := image.DeepCopy(), image.DeepCopy()
	terminating.Status.Phase = images.WorkerImageTerminating
	another.UID = "another"
	for _, test := range []struct {
		name string
		now  runtime.Object
		want bool
	}{
		{"the image as it was", image, false},
		{"the image on its way out", terminating, true},
		{"another image of that name", another, true},
		{"no image", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := visible(test.now); got != test.want {
				t.Errorf("shows it: %t, want %t", got, test.want)
			}
		})
	}
}

func TestAGoldenThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	for what, published := range everyGolden {
		t.Run(what, func(t *testing.T) {
			f := newFixture()
			image := published(f, t)
			leaving := f.of(image).objects[name].DeepCopy()
			leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
			f.of(image).put(leaving)
			if _, err := f.Delete(t.Context(), "", image); err != nil {
				t.Errorf("got %v", err)
			}
			if err := f.DryRunDelete(t.Context(), image); err != nil {
				t.Errorf("dry run: got %v", err)
			}
			if len(f.of(image).writes) != 0 {
				t.Errorf("writes %v", f.of(image).writes)
			}
		})
	}
}

func TestAnotherGoldenOfThatNameIsNeverDeleted(t *testing.T) {
	for of, published := range everyGolden {
		for what, change := range changes {
			for _, late := range []bool{false, true} {
				name := of + " that " + what
				if late {
					name += " when it is deleted"
				}
				t.Run(name, func(t *testing.T) { testDeleteConflict(t, published, change, late) })
			}
		}
		t.Run(of+" that changed when it is deleted", func(t *testing.T) {
			testDeleteConflict(t, published, func(c *cluster) { c.put(c.objects[name].DeepCopy()) }, true)
		})
	}
}

func testDeleteConflict(t *testing.T, published func(*fixture, *testing.T) *images.WorkerImage, change func(*cluster), late bool) {
	t.Helper()
	f := newFixture()
	image := published(f, t)
	cluster := f.of(image)
	if late {
		cluster.meanwhile = func() { change(cluster) }
	} else {
		change(cluster)
	}
	if _, err := f.Delete(t.Context(), "", image); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if len(cluster.writes) != 0 {
		t.Errorf("writes %v", cluster.writes)
	}
}

// A DataVolume takes over a claim of its name that CDI filled.
func TestAClaimThatHasADataVolumeAgainIsNotTheGolden(t *testing.T) {
	f := newFixture()
	bare := f.bareClaim()
	f.golden(t)
	if _, err := f.Delete(t.Context(), "", bare); !apierrors.IsConflict(err) {
		t.Errorf("delete: got %v, want a conflict", err)
	}
	if _, err := f.Update(t.Context(), "", bare, labelled(bare, "a")); !apierrors.IsConflict(err) {
		t.Errorf("update: got %v, want a conflict", err)
	}
	if len(f.claims.writes)+len(f.dataVolumes.writes) != 0 {
		t.Errorf("writes %v and %v", f.claims.writes, f.dataVolumes.writes)
	}
}
