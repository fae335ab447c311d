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

package memory

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// replicaOf returns a log of another process that has adopted all that f has published, and its first version.
func replicaOf(t *testing.T, f *fixture, change ...func(*LogOptions, *Options)) (r *fixture, first uint64) {
	t.Helper()
	first = FirstResourceVersion(started.Add(time.Minute), "replica")
	change = append(change, func(o *LogOptions, _ *Options) { o.First = first })
	r = newFixture(t, change...)
	if err := r.log.Replace(map[string]runtime.Object{}, f.log.first); err != nil {
		t.Fatal(err)
	}
	for i := range f.log.ring.len {
		r.adopt(t, f.log.ring.at(i))
	}
	return r, first
}

func (f *fixture) adopt(t *testing.T, e *event) {
	t.Helper()
	var obj runtime.Object
	if e.cur != nil {
		obj = e.cur.obj.DeepCopyObject()
	}
	if err := f.log.Adopt(e.key, obj, e.rv); err != nil {
		t.Fatal(err)
	}
}

func exactly(version string) storage.ListOptions {
	return storage.ListOptions{Predicate: storage.Everything, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
}

func TestAnAdoptedEventIsTheSameForClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(t, "a", "1")
		f.set(t, "b", "1")
		f.set(t, "a", "2")
		f.remove(t, "b")
		r, _ := replicaOf(t, f)
		opts := storage.ListOptions{Predicate: storage.Everything, ResourceVersion: f.version(1)}
		original, adopted := f.watch(t.Context(), t, opts), r.watch(t.Context(), t, opts)
		adopted.first = original.first
		defer original.Stop()
		defer adopted.Stop()
		if diff := cmp.Diff(original.drain(t), adopted.drain(t)); diff != "" {
			t.Errorf("a watch of the replica sends other events (-original +adopted):\n%s", diff)
		}
	})
}

func TestAnAdoptedEventFollowsTheOneBefore(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	r, _ := replicaOf(t, f)
	if err := r.log.Adopt(podKey("a"), newPod("a", "2"), r.log.ResourceVersion()); err == nil {
		t.Error("an event was adopted twice")
	}
}

func TestAContinuedHistoryHoldsWhatWasAdopted(t *testing.T) {
	f := newFixture(t)
	before := f.set(t, "a", "1")
	last := f.set(t, "a", "2")
	r, first := replicaOf(t, f)
	r.log.Continue(first)
	now := r.set(t, "a", "3")
	for version, want := range map[string]string{before: "a=1", last: "a=2", now: "a=3"} {
		list, err := r.list(t.Context(), exactly(version))
		if err != nil {
			t.Errorf("listed at %s: %v", version, err)
		} else if diff := cmp.Diff([]string{want}, describeList(list)); diff != "" {
			t.Errorf("listed at %s:\n%s", version, diff)
		}
	}
}

// Where nothing changes, only a bookmark can say that the version is another.
func TestAWatchIsToldOfAnEpochThatBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		version := f.set(t, "a", "1")
		r, first := replicaOf(t, f)
		opts := storage.ListOptions{Predicate: storage.Everything, ResourceVersion: version}
		opts.Predicate.AllowWatchBookmarks = true
		w := r.watch(t.Context(), t, opts)
		defer w.Stop()
		if events := w.drain(t); len(events) != 0 {
			t.Errorf("to begin with it is told of %v", events)
		}
		r.log.Continue(first)
		begun := r.log.ResourceVersion()
		synctest.Wait()
		select {
		case e := <-w.ResultChan():
			if got := resourceVersionOf(t, e); e.Type != watch.Bookmark || got != begun {
				t.Errorf("it is told of %s %d, not of %d", e.Type, got, begun)
			}
		default:
			t.Error("it is told nothing")
		}
		follower, _ := replicaOf(t, f)
		follower.log.Reach(begun)
		if got := follower.log.ResourceVersion(); got != begun {
			t.Errorf("a follower is at %d, not at %d", got, begun)
		}
		if _, err := follower.list(t.Context(), exactly(version)); err != nil {
			t.Errorf("what came before is gone: %v", err)
		}
		follower.log.Reach(begun)
		if events := w.drain(t); len(events) != 0 {
			t.Errorf("afterwards it is told of %v", events)
		}
	})
}

func resourceVersionOf(t *testing.T, e watch.Event) uint64 {
	t.Helper()
	rv, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(e.Object)
	if err != nil {
		t.Fatal(err)
	}
	return rv
}

func TestWhatWasIssuedAndNotAdoptedExpires(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	r, first := replicaOf(t, f)
	lost := f.set(t, "a", "2")
	r.log.Continue(first)
	r.set(t, "a", "3")
	if _, err := r.list(t.Context(), exactly(lost)); !apierrors.IsResourceExpired(err) {
		t.Errorf("listed at a version that another issued: %v", err)
	}
}

// A replica that leads, follows and leads again must not issue a version that means something else already.
func TestNoEpochBeginsTwice(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	r, first := replicaOf(t, f)
	r.log.Continue(first)
	mine := r.set(t, "a", "2")
	if err := r.log.Replace(map[string]runtime.Object{}, f.log.ResourceVersion()); err != nil {
		t.Fatal(err)
	}
	r.log.Continue(first)
	if again := r.set(t, "a", "3"); again <= mine {
		t.Errorf("issued %s, and %s before", again, mine)
	}
}

func TestAnEpochGoesOnUntilAnotherIsAdopted(t *testing.T) {
	f := newFixture(t)
	version := f.log.ResourceVersion()
	f.log.Continue(FirstResourceVersion(started.Add(time.Hour), "test"))
	if now := f.log.ResourceVersion(); now != version {
		t.Errorf("went on from %d to %d", version, now)
	}
}

// The version that a watch has reached may be higher than all that come after.
func TestReplacingAHistoryEndsItsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *LogOptions, _ *Options) { o.First = FirstResourceVersion(started.Add(time.Hour), "later") })
		f.set(t, "a", "1")
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: storage.Everything})
		defer w.Stop()
		w.drain(t)
		replacement := newPod("b", "1")
		replacement.ResourceVersion = strconv.FormatUint(FirstResourceVersion(started, "other")+1, 10)
		if err := f.log.Replace(map[string]runtime.Object{podKey("b"): replacement}, FirstResourceVersion(started, "other")+7); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ERROR Expired", "closed"}, w.drain(t)); diff != "" {
			t.Error(diff)
		}
		list, err := f.list(t.Context(), listEverything)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"b=1"}, describeList(list)); diff != "" {
			t.Error(diff)
		}
	})
}

// A log that publishes itself has nothing to wait for.
func TestARequestWaitsForAVersionThatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(t, "a", "1")
		r, first := replicaOf(t, f, func(o *LogOptions, _ *Options) { o.Patience = time.Second })
		version := f.set(t, "a", "2")
		listed := make(chan error, 1)
		go func() {
			_, err := r.list(context.Background(), exactly(version))
			listed <- err
		}()
		synctest.Wait()
		r.adopt(t, f.log.ring.at(1))
		if err := <-listed; err != nil {
			t.Error(err)
		}

		never := exactly(f.set(t, "a", "3"))
		for _, wait := range []time.Duration{time.Second, 0} {
			began := time.Now()
			if _, err := r.list(context.Background(), never); err == nil || time.Since(began) != wait {
				t.Errorf("answered after %s, not %s: %v", time.Since(began), wait, err)
			}
			r.log.Continue(first)
		}
	})
}
