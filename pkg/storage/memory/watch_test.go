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
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
)

func TestAStreamingListEndsItsBeginning(t *testing.T) {
	for _, row := range []struct {
		name string
		pods int
		pred storage.SelectionPredicate
		want []string
	}{
		{"of three objects", 3, selecting(), []string{"ADDED p0=1 at 1", "ADDED p1=1 at 2", "ADDED p2=1 at 3", "BOOKMARK initial-events-end at 3"}},
		{"of none", 0, selecting(), []string{"BOOKMARK initial-events-end at 0"}},
		{"of none that match", 3, selecting("2"), []string{"BOOKMARK initial-events-end at 3"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				for i := range row.pods {
					f.set(t, fmt.Sprintf("p%d", i), "1")
				}
				w := f.watch(t.Context(), t, streaming("", row.pred))
				if diff := cmp.Diff(row.want, w.drain(t)); diff != "" {
					t.Error(diff)
				}
				f.set(t, "q", "2")
				if got := w.drain(t); len(got) != 1 || got[0] != fmt.Sprintf("ADDED q=2 at %d", row.pods+1) {
					t.Errorf("what follows: %v", got)
				}
				w.Stop()
			})
		})
	}
}

func TestAWatchStartsWhereItIsAskedTo(t *testing.T) {
	const present = "ADDED a=2 at 3"
	for _, row := range []struct {
		name string
		opts func(*fixture) storage.ListOptions
		want []string
	}{
		{"with the present objects, for no version", func(*fixture) storage.ListOptions {
			return storage.ListOptions{}
		}, []string{present, "ADDED b=1 at 2"}},
		{"with the present objects, for version 0", func(*fixture) storage.ListOptions {
			return storage.ListOptions{ResourceVersion: "0"}
		}, []string{present, "ADDED b=1 at 2"}},
		{"now, for no version and no initial events", func(*fixture) storage.ListOptions {
			return storage.ListOptions{SendInitialEvents: new(false)}
		}, nil},
		{"now, for version 0 and no initial events", func(*fixture) storage.ListOptions {
			return storage.ListOptions{ResourceVersion: "0", SendInitialEvents: new(false)}
		}, nil},
		{"after a version", func(f *fixture) storage.ListOptions {
			return storage.ListOptions{ResourceVersion: f.version(1)}
		}, []string{"ADDED b=1 at 2", "MODIFIED a=2 at 3"}},
		{"with the present objects, for initial events since a version", func(f *fixture) storage.ListOptions {
			return streaming(f.version(1), selecting())
		}, []string{present, "ADDED b=1 at 2", "BOOKMARK initial-events-end at 3"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.set(t, "a", "1")
				f.set(t, "b", "1")
				f.set(t, "a", "2")
				opts := row.opts(f)
				if opts.SendInitialEvents == nil || !*opts.SendInitialEvents {
					opts.Predicate = selecting()
				}
				w := f.watch(t.Context(), t, opts)
				f.remove(t, "a")
				want := slices.Concat(row.want, []string{"DELETED a=2 at 4"})
				if diff := cmp.Diff(want, w.drain(t)); diff != "" {
					t.Error(diff)
				}
				w.Stop()
			})
		})
	}
}

func TestAWatchCatchesUpWithoutWaitingForAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 10 * readAhead
		f := newFixture(t)
		for i := range events {
			f.set(t, "a", strconv.Itoa(i))
		}
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: selecting(), ResourceVersion: f.version(0)})
		if got := w.drain(t); len(got) != events {
			t.Errorf("%d of %d events", len(got), events)
		}
		w.Stop()
	})
}

func TestAWatchWithASelectorSeesObjectsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: selecting("in"), ResourceVersion: f.version(0)})
		f.set(t, "a", "out")
		f.set(t, "a", "in")
		with := newPod("a", "in")
		with.Annotations = map[string]string{"last": "state"}
		apply(t, f.log, podKey("a"), with)
		f.set(t, "a", "out")
		f.set(t, "a", "still out")
		f.set(t, "a", "in")
		f.remove(t, "a")
		f.set(t, "b", "out")
		f.remove(t, "b")
		want := []string{"ADDED a=in at 2", "MODIFIED a=in at 3", "DELETED a=in at 4", "ADDED a=in at 6", "DELETED a=in at 7"}
		if diff := cmp.Diff(want, w.drain(t)); diff != "" {
			t.Error(diff)
		}
		w.Stop()
	})
}

func TestAnObjectThatStopsMatchingIsDeletedWithItsLastMatchingState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		with := newPod("a", "in")
		with.Annotations = map[string]string{"last": "state"}
		apply(t, f.log, podKey("a"), with)
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: selecting("in"), ResourceVersion: f.version(1)})
		f.set(t, "a", "out")
		e := <-w.ResultChan()
		want := newPod("a", "in")
		want.Annotations, want.ResourceVersion = map[string]string{"last": "state"}, f.version(2)
		if diff := cmp.Diff(want, toPod(t, e.Object)); e.Type != watch.Deleted || diff != "" {
			t.Errorf("%s\n%s", e.Type, diff)
		}
		w.Stop()
		if with.ResourceVersion != f.version(1) {
			t.Errorf("the published object was moved to %s", with.ResourceVersion)
		}
	})
}

func TestAllWatchersAreSentTheSameObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(t, "a", "in")
		var watchers []*reader
		for _, pred := range []storage.SelectionPredicate{selecting(), selecting(), selecting("in")} {
			watchers = append(watchers, f.watch(t.Context(), t, storage.ListOptions{Predicate: pred}))
		}
		f.set(t, "a", "in") // no change
		f.set(t, "b", "in")
		f.remove(t, "a")
		for _, what := range []string{"an initial event", "an added object", "a deleted object"} {
			first := (<-watchers[0].ResultChan()).Object
			if _, ok := first.(runtime.CacheableObject); !ok {
				t.Errorf("%s is encoded once for every watcher", what)
			}
			for _, w := range watchers[1:] {
				if other := (<-w.ResultChan()).Object; other != first {
					t.Errorf("%s is another object for another watcher", what)
				}
			}
		}
		for _, w := range watchers {
			w.Stop()
		}
	})
}

func TestBookmarksComePeriodicallyAndBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		opts := storage.ListOptions{Predicate: withBookmarks(selecting("none")), ResourceVersion: f.version(0)}
		w := f.watch(ctx, t, opts)
		silent := f.watch(ctx, t, storage.ListOptions{Predicate: selecting("none"), ResourceVersion: f.version(0)})
		begin := time.Now()
		var got []string
		for e := range w.ResultChan() {
			got = append(got, fmt.Sprintf("%s after %s", w.describe(t, e), time.Since(begin)))
			f.set(t, "a", strconv.Itoa(len(got)))
		}
		want := []string{"BOOKMARK at 0 after 1m0s", "BOOKMARK at 1 after 2m0s", "BOOKMARK at 2 after 2m28s"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if elapsed := time.Since(begin); elapsed != 150*time.Second {
			t.Errorf("the watch was open for %s", elapsed)
		}
		if diff := cmp.Diff([]string{"closed"}, silent.drain(t)); diff != "" {
			t.Errorf("without allowWatchBookmarks:\n%s", diff)
		}
	})
}

func TestABookmarkIsNoNewerThanWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: withBookmarks(selecting()), ResourceVersion: f.version(0)})
		const events = 3 * (resultBuffer + readAhead)
		for i := range events {
			f.set(t, "a", strconv.Itoa(i))
		}
		<-time.After(10 * DefaultBookmarkPeriod) // nobody reads
		seen, bookmarks := uint64(0), 0
		for seen < events || bookmarks == 0 {
			e := <-w.ResultChan()
			rv := parse(t, toPod(t, e.Object).ResourceVersion) - w.first
			if e.Type == watch.Bookmark {
				bookmarks++
				if rv != seen {
					t.Errorf("a bookmark at %d after an event at %d", rv, seen)
				}
			}
			seen = rv
		}
		w.Stop()
	})
}

func TestASlowWatcherDelaysNobodyAndIsSentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, events = 50, 1000
		f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window = window })
		opts := storage.ListOptions{Predicate: selecting(), ResourceVersion: f.version(0)}
		slow := f.watch(t.Context(), t, opts)
		var quick []*reader
		for range 50 {
			quick = append(quick, f.watch(t.Context(), t, opts))
		}
		for i := range events {
			f.set(t, "a", strconv.Itoa(i))
			for _, w := range quick {
				if e := <-w.ResultChan(); toPod(t, e.Object).ResourceVersion != f.version(i+1) {
					t.Fatalf("%v instead of the event at %d", w.describe(t, e), i+1)
				}
			}
		}
		got := slow.drain(t)
		if n := len(got); n < 3 || n > resultBuffer+readAhead+3 || !slices.Equal(got[n-2:], []string{"ERROR Expired", "closed"}) {
			t.Errorf("%d events for the slow one, at last %v", n, got[max(0, n-2):])
		}
		if stats := f.log.Stats(); stats.Watchers != 50 || stats.Overtaken != 1 {
			t.Errorf("%d watchers, %d overtaken", stats.Watchers, stats.Overtaken)
		}
		for _, w := range quick {
			w.Stop()
		}
	})
}

func TestAWatchThatStartsTooLateIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window = 1 })
		f.set(t, "a", "1")
		f.set(t, "a", "2")
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: selecting(), ResourceVersion: f.version(0)})
		if diff := cmp.Diff([]string{"ERROR Expired", "closed"}, w.drain(t)); diff != "" {
			t.Error(diff)
		}
		if got := f.log.Stats().Overtaken; got != 0 {
			t.Errorf("%d watchers were overtaken", got)
		}
	})
}

func TestAWatchOutlivesAnEpochWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(l *LogOptions, _ *Options) { l.First = 1 })
		f.log.counterBits = 2
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: selecting(), ResourceVersion: f.version(0)})
		f.set(t, "a", "1")
		f.set(t, "a", "2")
		if diff := cmp.Diff([]string{"ADDED a=1 at 1", "MODIFIED a=2 at 2"}, w.drain(t)); diff != "" {
			t.Error(diff)
		}
		f.set(t, "a", "3")
		if diff := cmp.Diff([]string{"ERROR Expired", "closed"}, w.drain(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAWatcherThatIsStoppedIsGone ends with a bubble in which no goroutine may be left.
func TestAWatcherThatIsStoppedIsGone(t *testing.T) {
	for name, stop := range map[string]func(*reader, context.CancelFunc){
		"by its client":  func(w *reader, _ context.CancelFunc) { w.Stop(); w.Stop() },
		"by its context": func(_ *reader, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				for i := range 10 * resultBuffer {
					f.set(t, fmt.Sprintf("p%d", i), "1")
				}
				for what, opts := range map[string]storage.ListOptions{
					"waiting":                     {Predicate: withBookmarks(selecting("none")), ResourceVersion: f.version(0)},
					"blocked by an event":         {Predicate: selecting(), ResourceVersion: f.version(0)},
					"blocked by an initial event": {Predicate: selecting()},
				} {
					ctx, cancel := context.WithCancel(t.Context())
					w := f.watch(ctx, t, opts)
					synctest.Wait()
					if got := f.log.Stats().Watchers; got != 1 {
						t.Errorf("%s: %d watchers", what, got)
					}
					stop(w, cancel)
					synctest.Wait()
					if got := f.log.Stats().Watchers; got != 0 {
						t.Errorf("%s: %d watchers after it was stopped", what, got)
					}
					cancel()
				}
			})
		})
	}
}

// TestAnInformerMovesToAnotherReplica uses client-go's informer as it is.
func TestAnInformerMovesToAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		replicas := []*fixture{
			newFixture(t),
			newFixture(t, func(l *LogOptions, _ *Options) { l.First = FirstResourceVersion(started.Add(-time.Hour), "other") }),
		}
		replicas[0].set(t, "a", "1")
		replicas[0].set(t, "gone", "1")
		replicas[1].set(t, "a", "2")
		through := &balancer{fixture: replicas[0]}
		informer := cache.NewSharedInformer(through, &example.Pod{}, 0)
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()

		<-time.After(time.Second)
		if !informer.HasSynced() {
			t.Error("not synced after a second")
		}
		through.fixture = replicas[1]
		through.cut()
		<-time.After(2 * time.Second)
		replicas[1].set(t, "b", "1")
		<-time.After(time.Second)
		var got []string
		for _, obj := range informer.GetStore().List() {
			pod := obj.(*example.Pod)
			got = append(got, pod.Name+"="+pod.Labels["l"])
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"a=2", "b=1"}, got); diff != "" {
			t.Error(diff)
		}
		cancel()
		<-done
	})
}

// balancer is a client's way to one replica of several.
type balancer struct {
	*fixture
	cut func()
}

func (b *balancer) List(opts metav1.ListOptions) (runtime.Object, error) {
	return b.list(context.Background(), listOptions(opts))
}

func (b *balancer) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b.cut = cancel
	options := listOptions(opts)
	options.Recursive = true
	w, err := b.fixture.Watch(ctx, "/pods", options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if shared, ok := e.Object.(runtime.CacheableObject); ok {
			e.Object = shared.GetObject()
		}
		return e, true
	}), nil
}

func listOptions(opts metav1.ListOptions) storage.ListOptions {
	pred := selecting()
	pred.AllowWatchBookmarks, pred.Limit, pred.Continue = opts.AllowWatchBookmarks, opts.Limit, opts.Continue
	return storage.ListOptions{
		Predicate:            pred,
		ResourceVersion:      opts.ResourceVersion,
		ResourceVersionMatch: opts.ResourceVersionMatch,
		SendInitialEvents:    opts.SendInitialEvents,
	}
}

func streaming(rv string, pred storage.SelectionPredicate) storage.ListOptions {
	return storage.ListOptions{
		Predicate:            withBookmarks(pred),
		ResourceVersion:      rv,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents:    new(true),
	}
}

func TestErrorsInAStreamAreStatuses(t *testing.T) {
	for want, err := range map[metav1.StatusReason]error{
		metav1.StatusReasonExpired:       fmt.Errorf("wrapped: %w", apierrors.NewResourceExpired("old")),
		metav1.StatusReasonInternalError: fmt.Errorf("another"),
	} {
		e := <-errorWatch(err).ResultChan()
		if status, ok := e.Object.(*metav1.Status); e.Type != watch.Error || !ok || status.Reason != want {
			t.Errorf("%v: %+v", err, e)
		}
		if _, err := meta.Accessor(e.Object); err == nil {
			t.Error("a status is taken for an object")
		}
	}
}

func TestAWatchEndsWithTheStatusForWhichItsContextIsCanceled(t *testing.T) {
	for _, row := range []struct {
		name  string
		cause error
		want  []string
	}{
		{"a status", apierrors.NewResourceExpired("list again"), []string{"ERROR Expired", "closed"}},
		{"no status", nil, []string{"closed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				w := f.watch(ctx, t, storage.ListOptions{Predicate: selecting()})
				synctest.Wait()
				cancel(row.cause)
				if diff := cmp.Diff(row.want, w.drain(t)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Guards: that sendCause takes out what waits. It may be what the client must not be sent any more.
func TestTheStatusThatEndsAWatchTakesThePlaceOfWhatWaits(t *testing.T) {
	for name, events := range map[string]int{"a few events wait": 3, "more wait than there is room for": 2 * resultBuffer} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				w := f.watch(ctx, t, storage.ListOptions{Predicate: selecting()})
				for i := range events {
					f.set(t, fmt.Sprintf("p%d", i), "1")
				}
				synctest.Wait()
				cancel(apierrors.NewResourceExpired("list again"))
				if diff := cmp.Diff([]string{"ERROR Expired", "closed"}, w.drain(t)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAWatchThatNobodyReadsCanBeStoppedWhileItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		w := f.watch(ctx, t, storage.ListOptions{Predicate: selecting()})
		for i := range 2 * resultBuffer {
			f.set(t, fmt.Sprintf("p%d", i), "1")
		}
		synctest.Wait()
		cancel(apierrors.NewResourceExpired("list again"))
		synctest.Wait()
		w.Stop()
		synctest.Wait()
		if n := f.log.Stats().Watchers; n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}
