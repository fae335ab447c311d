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

package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// witness holds what observers are shown against one another: a version is of one state, whoever shows it and in
// whichever way it was reached. An event that one of them is not told is a state that nobody else has seen.
type witness struct {
	mu    sync.Mutex
	seen  map[uint64]sighting
	wrong []string
}

// sighting is a state, and who has seen it first. Of each image the state has a digest.
type sighting struct {
	by    string
	state map[string]string
}

func (w *witness) see(by string, version uint64, state map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, known := w.seen[version]
	if !known {
		w.seen[version] = sighting{by: by, state: maps.Clone(state)}
		return
	}
	if diff := cmp.Diff(first.state, state); diff != "" {
		w.wrong = append(w.wrong, fmt.Sprintf("version %d is of another state at %s than at %s:\n%s", version, by, first.by, diff))
	}
}

// complain notes what an observer may not be shown.
func (w *witness) complain(by, format string, values ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, by+": "+fmt.Sprintf(format, values...))
}

// check fails the test for everything that was wrong.
func (w *witness) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	t.Logf("%d states were seen", len(w.seen))
}

// observer is a client that lists once and watches from then on, for as long as it is not told that what it holds is
// expired.
type observer struct {
	name    string
	server  access
	witness *witness

	mu      sync.Mutex
	state   map[string]string // nil: it has to list
	version uint64
	lists   int
	ended   int // watches that ended otherwise
}

// observe has observers at each replica and one, the last, at whichever the balancer chooses, until the test ends.
func (p *platform) observe(t *testing.T) (*witness, []*observer) {
	t.Helper()
	w := &witness{seen: map[uint64]sighting{}}
	var all []*observer
	for i := range p.Replicas() {
		all = append(all, &observer{name: fmt.Sprintf("replica %d", i), server: p.direct(t, i), witness: w})
	}
	all = append(all, &observer{name: "the balancer", server: p.access, witness: w})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for _, o := range all {
		running.Go(func() { wait.UntilWithContext(ctx, o.turn, await.Interval) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for _, o := range all {
		await.For(t, o.name+" to be observed", func(context.Context) error {
			if lists, _ := o.counts(); lists == 0 {
				return errors.New("it is not")
			}
			return nil
		})
	}
	return w, all
}

// counts are how often it has listed, and how often a watch has ended otherwise than by being expired.
func (o *observer) counts() (lists, ended int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lists, o.ended
}

// turn lists if it has to, and watches until that ends.
func (o *observer) turn(ctx context.Context) {
	if o.state == nil && !o.list(ctx) {
		return
	}
	path := fmt.Sprintf("%s?watch=1&allowWatchBookmarks=true&resourceVersion=%d", workerImages, o.version)
	response, err := o.server.wire.Open(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		o.read(json.NewDecoder(response.Body))
	case http.StatusGone:
		o.forget()
	}
}

func (o *observer) list(ctx context.Context) (done bool) {
	a, err := o.server.ask(ctx, workerImages)
	var list v1alpha1.WorkerImageList
	if err != nil || a.Status != http.StatusOK || json.Unmarshal(a.Body, &list) != nil {
		return false
	}
	state := map[string]string{}
	for i := range list.Items {
		state[list.Items[i].Name] = digest(&list.Items[i])
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists++
	o.state = state
	o.version = o.versionOf(list.ResourceVersion)
	o.witness.see(o.name, o.version, o.state)
	return true
}

func (o *observer) read(events *json.Decoder) {
	for {
		var e wire.Event
		if events.Decode(&e) != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.ended++
			return
		}
		if !o.enter(e) {
			return
		}
	}
}

// enter takes an event in, and is false if nothing follows it.
func (o *observer) enter(e wire.Event) (more bool) {
	if e.Type == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(e.Raw, &status); err != nil || status.Reason != metav1.StatusReasonExpired {
			o.witness.complain(o.name, "a watch ends with %s", e.Raw)
		}
		o.forget()
		return false
	}
	var image v1alpha1.WorkerImage
	if err := json.Unmarshal(e.Raw, &image); err != nil {
		o.witness.complain(o.name, "%s: %v", e.Raw, err)
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, version := o.version, o.versionOf(image.ResourceVersion)
	_, had := o.state[image.Name]
	switch {
	case e.Type == watch.Bookmark && version >= before:
	case e.Type == watch.Added && !had && version > before, e.Type == watch.Modified && had && version > before:
		o.state[image.Name] = digest(&image)
	case e.Type == watch.Deleted && had && version > before:
		delete(o.state, image.Name)
	default:
		o.witness.complain(o.name, "after version %d, %s of %s at %d, had it: %v", before, e.Type, image.Name, version, had)
	}
	o.version = version
	o.witness.see(o.name, version, o.state)
	return true
}

func (o *observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = nil
}

func (o *observer) versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		o.witness.complain(o.name, "version %q: %v", text, err)
	}
	return version
}

// digest tells an image from every other, and from itself at another time.
func digest(image *v1alpha1.WorkerImage) string {
	own := *image
	own.TypeMeta = metav1.TypeMeta{}
	content, err := json.Marshal(own)
	if err != nil {
		panic(err) // nothing in an image can fail
	}
	return fmt.Sprintf("%s %x", image.ResourceVersion, sha256.Sum256(content))
}

// checkConverged makes sure that all observers come to hold the same, and that nothing was wrong on the way.
func checkConverged(t *testing.T, w *witness, all []*observer) {
	t.Helper()
	awaitAlike(t, all)
	w.check(t)
}

func awaitAlike(t *testing.T, all []*observer) {
	t.Helper()
	await.For(t, "all observers to hold the same", func(context.Context) error {
		first := all[0].holds()
		for _, o := range all[1:] {
			if diff := cmp.Diff(first, o.holds()); diff != "" {
				return fmt.Errorf("(-%s +%s):\n%s", all[0].name, o.name, diff)
			}
		}
		if len(first) == 0 {
			return errors.New("they hold nothing")
		}
		return nil
	})
}

func (o *observer) holds() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.state)
}

// lists are how often the observers have listed, in their order.
func lists(all []*observer) []int {
	var counts []int
	for _, o := range all {
		count, _ := o.counts()
		counts = append(counts, count)
	}
	return counts
}

// checkNobodyListed makes sure that no observer has listed but to begin with.
func checkNobodyListed(t *testing.T, all []*observer) {
	t.Helper()
	for _, o := range all {
		if count, _ := o.counts(); count > 1 {
			t.Errorf("the observer of %s has listed %d times", o.name, count)
		}
	}
}
