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
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// publishInterval is the least time between two publications of an object that differ in nothing anybody
// waits for.
const publishInterval = time.Second

// Stats count the work since the start.
type Stats struct {
	// Projections of one name each. Each object of that name, an image or a catalog entry, was one of the
	// following.
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

// worker projects the images and the catalog entries that changes concern, and what forms offer of the images,
// and publishes them. It is one goroutine, so that the changes of an object are published in their order.
type worker struct {
	inventory *Inventory
	publisher Publisher
	report    func(context.Context, CatalogReport)
	reported  func(context.Context, ImageReport)
	projected func(time.Duration)
	clock     clock.WithTicker

	ready   bool
	images  outlet[images.WorkerImage]
	entries outlet[images.CatalogEntry]
	offer   offer
	// deferred says when to look at a name again, although nothing changes.
	deferred map[string]time.Time
}

// outlet is where the objects of one kind are published.
type outlet[O any] struct {
	publish   func(name string, object *O) error
	urgent    func(from, to *O) bool
	published map[string]publication[O]
}

// publication is an object as it was published last.
type publication[O any] struct {
	object *O
	at     time.Time
}

func newWorker(i *Inventory, config Config) *worker {
	w := &worker{
		inventory: i,
		publisher: config.Publisher,
		report:    config.ReportCatalog,
		reported:  config.ReportImage,
		projected: config.Projected,
		clock:     i.clock,
		images:    outlet[images.WorkerImage]{urgent: urgentImage, published: map[string]publication[images.WorkerImage]{}},
		entries:   outlet[images.CatalogEntry]{urgent: urgentEntry, published: map[string]publication[images.CatalogEntry]{}},
		offer:     newOffer(config.Platform, config.GoldensNamespace),
		deferred:  map[string]time.Time{},
	}
	if w.publisher != nil {
		w.images.publish, w.entries.publish = w.publishImage, w.publisher.PublishEntry
	}
	return w
}

func (w *worker) publishImage(name string, image *images.WorkerImage) error {
	if err := w.publisher.PublishImage(name, image); err != nil {
		return err
	}
	w.offer.note(name, image)
	return nil
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
	if report, due := w.inventory.takeReport(); due && w.report != nil {
		w.report(ctx, report)
	}
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
	next = earliest(next, w.publishOffer(ctx))
	if !w.ready {
		w.ready = true
		klog.FromContext(ctx).Info("All that is there has been published", "images", len(w.images.published), "entries", len(w.entries.published))
		w.publisher.Ready()
	}
	for _, at := range w.deferred {
		next = earliest(next, at)
	}
	return next
}

// publishOffer publishes what forms offer, once for all that has changed. It returns when to try again.
func (w *worker) publishOffer(ctx context.Context) (again time.Time) {
	again, err := w.offer.publish(w.clock.Now(), w.publisher.PublishOption)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot publish the options, will try again")
		w.inventory.count(func(s *Stats) { s.Failed++ })
	}
	return again
}

// update projects the image and the catalog entry of a name, and publishes what changed.
func (w *worker) update(ctx context.Context, name string) {
	now := metav1.NewTime(w.clock.Now())
	in, ok := w.inventory.image(name)
	if !ok {
		w.inventory.settled(name)
		return
	}
	delete(w.deferred, name)
	image := projection.WorkerImage(in, w.images.published[name].object, now)
	entry := projection.CatalogEntry(projection.Entry{Image: in, WorkerImage: image}, w.entries.published[name].object, now)
	if w.projected != nil {
		w.projected(w.clock.Since(now.Time))
	}
	before := w.images.published[name].object
	again := earliest(publish(ctx, w, &w.images, name, image), publish(ctx, w, &w.entries, name, entry))
	if published := w.images.published[name].object; published != before && w.reported != nil {
		w.reported(ctx, imageReport(in, published))
	}
	if again.IsZero() {
		w.inventory.settled(name)
	} else {
		w.deferred[name] = again
	}
}

func imageReport(in projection.Image, image *images.WorkerImage) ImageReport {
	out := ImageReport{Name: in.ID.Name(), Image: image}
	switch {
	case in.DataVolume != nil:
		out.Namespace, out.UID = in.DataVolume.Namespace, in.DataVolume.UID
	case in.Claim != nil:
		out.Namespace, out.UID = in.Claim.Namespace, in.Claim.UID
	}
	return out
}

// publish publishes an object if it changed and its time has come, and returns when to project it again
// although nothing changes; zero for never.
func publish[O any](ctx context.Context, w *worker, to *outlet[O], name string, object *O) (again time.Time) {
	now, last := w.clock.Now(), to.published[name]
	dueAt := last.at.Add(publishInterval)
	switch {
	case object == nil && last.object == nil:
		return time.Time{}
	case equality.Semantic.DeepEqual(object, last.object):
		w.inventory.count(func(s *Stats) { s.Unchanged++ })
		return time.Time{}
	case now.Before(dueAt) && !to.urgent(last.object, object):
		w.inventory.count(func(s *Stats) { s.Deferred++ })
		return dueAt
	}
	if err := to.publish(name, object); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot publish an object, will try again", "kind", fmt.Sprintf("%T", object), "name", name)
		w.inventory.count(func(s *Stats) { s.Failed++ })
		return now.Add(publishInterval)
	}
	w.inventory.count(func(s *Stats) { s.Published++ })
	if object == nil {
		delete(to.published, name)
	} else {
		to.published[name] = publication[O]{object: object, at: now}
	}
	return time.Time{}
}

// urgentImage is true for a change that somebody may be waiting for: of the phase, of a condition, or of
// anything in the metadata.
func urgentImage(from, to *images.WorkerImage) bool {
	return from == nil || to == nil ||
		from.Status.Phase != to.Status.Phase ||
		!equality.Semantic.DeepEqual(from.ObjectMeta, to.ObjectMeta) ||
		!sameAnswers(from.Status.Conditions, to.Status.Conditions)
}

// urgentEntry is urgentImage for catalog entries, whose metadata never changes.
func urgentEntry(from, to *images.CatalogEntry) bool {
	return from == nil || to == nil ||
		from.Status.Phase != to.Status.Phase ||
		!sameAnswers(from.Status.Conditions, to.Status.Conditions)
}

func sameAnswers(a, b []metav1.Condition) bool { return slices.EqualFunc(a, b, sameAnswer) }

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
