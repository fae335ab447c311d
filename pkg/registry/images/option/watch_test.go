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

package option

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

var toTenant = translation{requested: "tenant-a", stored: goldens}

// Guards: the types of events that are stamped.
func TestWhatBelongsToNoNamespaceStaysAsItIs(t *testing.T) {
	for _, event := range []watch.Event{
		{Type: watch.Bookmark, Object: &images.Option{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}},
		{Type: watch.Error, Object: &metav1.Status{Code: 410}},
	} {
		from := watch.NewFake()
		w := newStampedWatch(from, toTenant)
		want := watch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()}
		from.Action(event.Type, event.Object)
		if diff := cmp.Diff(want, next(t, w)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event.Type, diff)
		}
		w.Stop()
	}
}

// Guards: that deletions are among them.
func TestADeletionIsThatOfTheNamespace(t *testing.T) {
	from := watch.NewFake()
	w := newStampedWatch(from, toTenant)
	defer w.Stop()
	from.Delete(&images.Option{ObjectMeta: metav1.ObjectMeta{Namespace: goldens, Name: "workerimage", UID: "1", ResourceVersion: "7"}})
	want := watch.Event{Type: watch.Deleted, Object: runtime.Object(&images.Option{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant-a", Name: "workerimage", UID: projection.OptionUID("tenant-a", "workerimage"), ResourceVersion: "7",
	}})}
	if diff := cmp.Diff(want, next(t, w)); diff != "" {
		t.Errorf("unexpected event (-want +got):\n%s", diff)
	}
}

// Guards: that the channel is closed.
func TestAWatchEndsWithTheOneOfTheLog(t *testing.T) {
	from := watch.NewFake()
	w := newStampedWatch(from, toTenant)
	defer w.Stop()
	from.Stop()
	if event, open := <-w.ResultChan(); open {
		t.Errorf("an event after the end: %v", event)
	}
}

// Guards: that forwarding heeds Stop, and that Stop may be called again.
func TestAWatchThatIsStoppedEndsThoughNobodyReadsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFakeWithChanSize(10*resultBuffer, false)
		for range 10 * resultBuffer {
			from.Add(&images.Option{})
		}
		w := newStampedWatch(from, toTenant)
		synctest.Wait()
		w.Stop()
		w.Stop() // as often as one likes
		if !from.IsStopped() {
			t.Error("the watch of the log goes on")
		}
	})
}
