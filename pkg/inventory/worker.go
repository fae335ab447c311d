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

package inventory

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// publishInterval is the least time between two publications of an image that differ in nothing anybody
// waits for.
const publishInterval = time.Second

// Stats count the work since the start.
type Stats struct {
	// Projections of one image each. What came out was one of the following.
	Projections uint64
	// Unchanged counts those equal to what was published.
	Unchanged uint64
	// Published counts those that were published.
	Published uint64
	// Deferred counts those that were left for the end of the publish interval.
	Deferred uint64
	// Failed counts those that the publisher refused.
	Failed uint64
}

// worker projects the images that changes concern, and publishes them. It is one goroutine, so that the
// changes of an image are published in their order.
type worker struct {
	inventory *Inventory
	publisher Publisher
	clock     clock.WithTicker

	ready     bool
	published map[string]publication
	// deferred says when to look at an image again, although nothing changes.
	deferred map[string]time.Time
}

// publication is an image as it was published last.
type publication struct {
	image *images.WorkerImage
	at    time.Time
}

func newWorker(i *Inventory, publisher Publisher) *worker {
	return &worker{
		inventory: i,
		publisher: publisher,
		clock:     i.clock,
		published: map[string]publication{},
		deferred:  map[string]time.Time{},
	}
}

// run works until ctx is done.
func (w *worker) run(ctx context.Context) {
	for {
		wait := w.until(w.pass(ctx))
		select {
		case <-ctx.Done():
		case <-w.inventory.wake:
		case <-wait.C():
		}
		wait.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// idle is longer than anybody waits for something to happen.
const idle = time.Hour

// until is a timer that ends at a point in time, or late where that is zero.
func (w *worker) until(at time.Time) clock.Timer {
	if at.IsZero() {
		return w.clock.NewTimer(idle)
	}
	return w.clock.NewTimer(at.Sub(w.clock.Now()))
}

// pass does what there is to do now, and returns when there will be something to do although nothing
// changes; zero for never.
func (w *worker) pass(ctx context.Context) (next time.Time) {
	now := w.clock.Now()
	names, complete, next := w.inventory.changes(ctx, now)
	if !complete {
		return next
	}
	for name, at := range w.deferred {
		if !at.After(now) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if ctx.Err() != nil {
			return next
		}
		w.update(ctx, name)
	}
	if !w.ready {
		w.ready = true
		klog.FromContext(ctx).Info("All that is there has been published", "images", len(w.published))
		w.publisher.Ready()
	}
	for _, at := range w.deferred {
		next = earliest(next, at)
	}
	return next
}

// update projects an image, and publishes it if it changed and its time has come.
func (w *worker) update(ctx context.Context, name string) {
	in, ok := w.inventory.image(name)
	if !ok {
		w.inventory.settled(name)
		return
	}
	delete(w.deferred, name)
	now := w.clock.Now()
	last := w.published[name]
	image := projection.WorkerImage(in, last.image, metav1.NewTime(now))
	dueAt := last.at.Add(publishInterval)
	switch {
	case equality.Semantic.DeepEqual(image, last.image):
		w.inventory.count(func(s *Stats) { s.Unchanged++ })
		w.inventory.settled(name)
	case now.Before(dueAt) && !urgent(last.image, image):
		w.deferred[name] = dueAt
		w.inventory.count(func(s *Stats) { s.Deferred++ })
	default:
		w.publish(ctx, name, image, now)
	}
}

func (w *worker) publish(ctx context.Context, name string, image *images.WorkerImage, now time.Time) {
	if err := w.publisher.Publish(name, image); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot publish an image, will try again", "image", name)
		w.deferred[name] = now.Add(publishInterval)
		w.inventory.count(func(s *Stats) { s.Failed++ })
		return
	}
	w.inventory.count(func(s *Stats) { s.Published++ })
	w.inventory.settled(name)
	if image == nil {
		delete(w.published, name)
		return
	}
	w.published[name] = publication{image: image, at: now}
}

// urgent is true for a change that somebody may be waiting for: of the phase, of a condition, or of
// anything in the metadata.
func urgent(from, to *images.WorkerImage) bool {
	return from == nil || to == nil ||
		from.Status.Phase != to.Status.Phase ||
		!equality.Semantic.DeepEqual(from.ObjectMeta, to.ObjectMeta) ||
		!slices.EqualFunc(from.Status.Conditions, to.Status.Conditions, sameAnswer)
}

func sameAnswer(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
}

// earliest of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
