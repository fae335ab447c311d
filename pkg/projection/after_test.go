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

package projection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

func TestAConditionKeepsTheTimeItWasPublishedWithWhileItsStatusStays(t *testing.T) {
	earlier, later := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	conditions := func(ready, inUse metav1.ConditionStatus, at metav1.Time) []metav1.Condition {
		return []metav1.Condition{
			{Type: images.ConditionReady, Status: ready, LastTransitionTime: at},
			{Type: images.ConditionInUse, Status: inUse, LastTransitionTime: at},
		}
	}
	image := func(uid string, conditions []metav1.Condition) *images.WorkerImage {
		out := &images.WorkerImage{Status: images.WorkerImageStatus{Conditions: conditions}}
		out.UID = "of the golden"
		if uid != "" {
			out.UID = "of another golden"
		}
		return out
	}
	published := image("", conditions(metav1.ConditionTrue, metav1.ConditionFalse, earlier))
	for name, test := range map[string]struct {
		image        *images.WorkerImage
		ready, inUse metav1.Time
	}{
		"one that changes has its own":           {image("", conditions(metav1.ConditionTrue, metav1.ConditionTrue, later)), earlier, later},
		"those of another golden have their own": {image("another", conditions(metav1.ConditionTrue, metav1.ConditionFalse, later)), later, later},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.image.DeepCopy()
			got := ImageAfter(published, test.image).Status.Conditions
			if !got[0].LastTransitionTime.Equal(&test.ready) || !got[1].LastTransitionTime.Equal(&test.inUse) {
				t.Errorf("times %v and %v", got[0].LastTransitionTime, got[1].LastTransitionTime)
			}
			if diff := cmp.Diff(before, test.image); diff != "" {
				t.Errorf("the image was modified:\n%s", diff)
			}
		})
	}
}

// Whoever sees the entry only now must not learn since when others have.
func TestTheConditionsOfAnEntryBeginWhenItBecomesKnown(t *testing.T) {
	earlier, later := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	entry := func(declared bool, at metav1.Time) *images.CatalogEntry {
		return &images.CatalogEntry{Status: images.CatalogEntryStatus{
			Declared:   declared,
			Conditions: []metav1.Condition{{Type: images.ConditionMaterialized, Status: metav1.ConditionFalse, LastTransitionTime: at}},
		}}
	}
	for name, test := range map[string]struct {
		before, now bool
		want        metav1.Time
	}{
		"it is known and was":         {true, true, earlier},
		"it becomes known":            {false, true, later},
		"it is not known and was not": {false, false, earlier},
	} {
		t.Run(name, func(t *testing.T) {
			got := EntryAfter(entry(test.before, earlier), entry(test.now, later)).Status.Conditions[0].LastTransitionTime
			if !got.Equal(&test.want) {
				t.Errorf("begins at %v", got)
			}
		})
	}
}
