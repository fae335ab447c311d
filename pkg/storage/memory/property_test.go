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
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// TestWhatAClientHasSeenIsTheStateAtItsVersion makes random changes while clients list, stream and
// watch, with and without selectors, read as slowly as they like, and are cut after any event, from
// where they resume. Whatever a client holds at a version must be what an exact list is at it.
func TestWhatAClientHasSeenIsTheStateAtItsVersion(t *testing.T) {
	var total tally
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				for range 300 {
					w.step()
				}
				w.settle()
				total.add(w.tally)
			})
		})
	}
	t.Logf("%+v", total)
	for _, n := range []int{total.Events, total.Bookmarks, total.Resumed, total.Expired, total.Overtaken, total.Epochs} {
		if n < 100 {
			t.Errorf("too little happened to prove anything: %+v", total)
		}
	}
}

type tally struct{ Events, Bookmarks, Resumed, Expired, Overtaken, Epochs, Exact int }

func (a *tally) add(b tally) {
	a.Events += b.Events
	a.Bookmarks += b.Bookmarks
	a.Resumed += b.Resumed
	a.Expired += b.Expired
	a.Overtaken += b.Overtaken
	a.Epochs += b.Epochs
	a.Exact += b.Exact
}

// world is a log, its whole history, and clients.
type world struct {
	*testing.T
	*fixture
	*rand.Rand
	history map[string]map[string]string // by version, the labels by name
	clients []*client
	tally   tally
}

type client struct {
	pred    storage.SelectionPredicate
	label   string // that is selected, if any
	watch   watch.Interface
	state   map[string]string
	version string // that state is of; empty while initial events come
}

func newWorld(t *testing.T, seed uint64) *world {
	f := newFixture(t, func(l *LogOptions, o *Options) {
		l.First = 1
		l.Window = 40
		o.BookmarkPeriod = time.Second
	})
	f.log.counterBits = 7 // epochs end, too
	w := &world{T: t, fixture: f, Rand: rand.New(rand.NewPCG(seed, 0)), history: map[string]map[string]string{f.version(0): {}}}
	for i := range 6 {
		c := &client{pred: withBookmarks(selecting())}
		if i%2 == 1 {
			c.label = strconv.Itoa(i / 2)
			c.pred = withBookmarks(selecting(c.label))
		}
		w.clients = append(w.clients, c)
	}
	return w
}

func (w *world) step() {
	switch n := w.IntN(20); {
	case n < 10:
		for range w.IntN(8) {
			w.change()
		}
	case n < 18:
		w.read(w.clients[w.IntN(len(w.clients))], w.IntN(60))
	case n < 19:
		w.cut(w.clients[w.IntN(len(w.clients))])
	default:
		<-time.After(time.Second)
	}
}

func (w *world) change() {
	name := "p" + strconv.Itoa(w.IntN(8))
	epoch := w.log.ResourceVersion() >> w.log.counterBits
	now := maps.Clone(w.history[strconv.FormatUint(w.log.ResourceVersion(), 10)])
	var rv string
	if w.IntN(4) == 0 {
		rv = w.remove(w, name)
		delete(now, name)
	} else {
		label := strconv.Itoa(w.IntN(3))
		rv = w.set(w, name, label)
		now[name] = label
	}
	if parse(w, rv)>>w.log.counterBits != epoch {
		w.tally.Epochs++
	}
	w.history[rv] = now
}

// read takes up to n events of a client's watch, which it opens if there is none.
func (w *world) read(c *client, n int) {
	if c.watch == nil {
		w.open(c)
	}
	for range n {
		synctest.Wait()
		select {
		case e, open := <-c.watch.ResultChan():
			if !open {
				w.Fatal("a watch that nobody stopped ended without a word")
			}
			if w.receive(c, e); c.watch == nil {
				return
			}
		default:
			return
		}
	}
}

func (w *world) open(c *client) {
	opts := storage.ListOptions{Predicate: c.pred, Recursive: true, ResourceVersion: c.version}
	switch {
	case c.version != "":
		w.tally.Resumed++
	case w.IntN(2) == 0:
		opts = streaming("", c.pred)
		opts.Recursive = true
		c.state = map[string]string{}
	default:
		list, err := w.list(context.Background(), storage.ListOptions{Predicate: c.pred})
		if err != nil {
			w.Fatal(err)
		}
		c.state, c.version = map[string]string{}, list.ResourceVersion
		for _, pod := range list.Items {
			c.state[pod.Name] = pod.Labels["l"]
		}
		w.compare(c)
		opts.ResourceVersion = list.ResourceVersion
	}
	watch, err := w.Watch(context.Background(), "/pods", opts)
	if err != nil {
		w.Fatal(err)
	}
	c.watch = watch
}

func (w *world) receive(c *client, e watch.Event) {
	if e.Type == watch.Error {
		if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) {
			w.Fatal(err)
		}
		w.tally.Expired++
		w.cut(c)
		c.version = ""
		return
	}
	pod := toPod(w, e.Object)
	_, had := c.state[pod.Name]
	switch {
	case e.Type == watch.Added && !had, e.Type == watch.Modified && had:
		w.tally.Events++
		c.state[pod.Name] = pod.Labels["l"]
	case e.Type == watch.Deleted && had:
		w.tally.Events++
		delete(c.state, pod.Name)
	case e.Type == watch.Bookmark:
		w.tally.Bookmarks++
		if end := pod.Annotations[metav1.InitialEventsAnnotationKey] == "true"; end != (c.version == "") {
			w.Fatalf("the bookmark at %s ends initial events: %t", pod.ResourceVersion, end)
		}
	default:
		w.Fatalf("%s of %s, had it: %t", e.Type, pod.Name, had)
	}
	if c.version == "" && e.Type != watch.Bookmark {
		return
	}
	if c.version != "" && parse(w, pod.ResourceVersion) < parse(w, c.version) {
		w.Fatalf("back from %s to %s", c.version, pod.ResourceVersion)
	}
	c.version = pod.ResourceVersion
	w.compare(c)
}

// compare holds what a client has seen against the history, and against an exact list, which is
// there as long as the log reaches back.
func (w *world) compare(c *client) {
	want, known := w.history[c.version]
	if !known {
		w.Fatalf("no event has version %s", c.version)
	}
	want = maps.Clone(want)
	maps.DeleteFunc(want, func(_, label string) bool { return c.label != "" && label != c.label })
	if diff := cmp.Diff(want, c.state); diff != "" {
		w.Fatalf("seen at %s:\n%s", c.version, diff)
	}
	list, err := w.list(context.Background(), storage.ListOptions{
		Predicate: c.pred, ResourceVersion: c.version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if parse(w, c.version) < w.log.Stats().CompactedResourceVersion {
		if !apierrors.IsResourceExpired(err) {
			w.Fatalf("listed at %s: %v", c.version, err)
		}
		return
	}
	w.tally.Exact++
	listed := map[string]string{}
	for _, pod := range list.Items {
		listed[pod.Name] = pod.Labels["l"]
	}
	if diff := cmp.Diff(want, listed); err != nil || diff != "" {
		w.Fatalf("listed at %s: %v\n%s", c.version, err, diff)
	}
}

func (w *world) cut(c *client) {
	if c.watch == nil {
		return
	}
	c.watch.Stop()
	c.watch = nil // in the middle of initial events there is no version yet to resume from
}

// settle lets all clients read to the end, where they must all be at the present.
func (w *world) settle() {
	for _, c := range w.clients {
		for now := strconv.FormatUint(w.log.ResourceVersion(), 10); c.version != now; {
			w.read(c, 1000)
			<-time.After(time.Second) // for a bookmark
		}
		w.cut(c)
	}
	w.tally.Overtaken = int(w.log.Stats().Overtaken)
}
