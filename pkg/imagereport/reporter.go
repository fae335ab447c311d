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

package imagereport

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

const (
	// patience is how long an obstacle stands before anything is said. Every importer waits a moment for its node.
	patience = 30 * time.Second
	// writeTimeout is how long the cluster may take over an Event.
	writeTimeout = 10 * time.Second
	// attempts are made to record an Event. The next obstacle is more interesting than the last one.
	attempts = 5
)

// Events is where Events on goldens are recorded. It is the part of typedcorev1.EventInterface that is needed here.
type Events interface {
	Create(ctx context.Context, event *corev1.Event, options metav1.CreateOptions) (*corev1.Event, error)
}

// Reporter tells what stands in the way of images.
type Reporter struct {
	events Events
	clock  clock.WithTicker
	// queue holds the names of the images of which an Event is due. It limits how often the cluster is tried.
	queue workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// found is what stands in the way of an image, by its name.
	found map[string]finding
}

// finding is an obstacle that is there now.
type finding struct {
	obstacle
	since time.Time
	// told is true once it was said.
	told bool
}

// New returns a Reporter. Without events the log has to do.
func New(events Events, clock clock.WithTicker) *Reporter {
	return &Reporter{
		events: events,
		clock:  clock,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: clock}),
		found: map[string]finding{},
	}
}

// Report is told of an image each time that it is published.
func (r *Reporter) Report(ctx context.Context, report inventory.ImageReport) {
	if isUnknown(report) {
		return
	}
	now := obstacleTo(report)
	before, isNew := r.remember(report.Name, now)
	switch {
	case isNew && now != obstacle{}:
		r.queue.AddAfter(report.Name, patience)
	case isNew && before.told && report.Image != nil && report.Image.Status.Phase != images.WorkerImageTerminating:
		klog.FromContext(ctx).Info("Nothing stands in the way of an image any more", "image", report.Name, "was", before.reason)
	}
}

// remember keeps what stands in the way of an image now. It returns what did so before, and whether it is anything new.
func (r *Reporter) remember(image string, now obstacle) (before finding, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.found[image]
	switch {
	case now == obstacle{}:
		delete(r.found, image)
	case now.same(before.obstacle):
		r.found[image] = finding{obstacle: now, since: before.since, told: before.told}
	default:
		r.found[image] = finding{obstacle: now, since: r.clock.Now()}
	}
	return before, !now.same(before.obstacle)
}

// Run records Events until ctx is done.
func (r *Reporter) Run(ctx context.Context) {
	var stopping sync.WaitGroup
	defer stopping.Wait()
	stopping.Go(func() {
		<-ctx.Done()
		r.queue.ShutDown()
	})
	for {
		image, isOver := r.queue.Get()
		if isOver || ctx.Err() != nil {
			return
		}
		r.record(ctx, image)
		r.queue.Done(image)
	}
}

// due returns what stands in the way of an image, and for how long it has yet to do so before anything is said.
func (r *Reporter) due(image string) (found finding, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.found[image]
	if !ok {
		return finding{}, 0
	}
	if wait = found.since.Add(patience).Sub(r.clock.Now()); wait <= 0 {
		r.found[image] = finding{obstacle: found.obstacle, since: found.since, told: true}
	}
	return found, wait
}

// record says what is due. That another server has made the Event is as good.
func (r *Reporter) record(ctx context.Context, image string) {
	found, wait := r.due(image)
	switch {
	case wait > 0:
		r.queue.AddAfter(image, wait)
		return
	case found == finding{}:
		r.queue.Forget(image)
		return
	case !found.told:
		klog.FromContext(ctx).Info("Something stands in the way of an image", "image", image, "reason", found.reason)
	}
	switch err := r.create(ctx, found.event(metav1.NewTime(r.clock.Now()))); {
	case err == nil || apierrors.IsAlreadyExists(err):
		r.queue.Forget(image)
	case r.queue.NumRequeues(image) < attempts-1:
		r.queue.AddRateLimited(image)
	default:
		r.queue.Forget(image)
		klog.FromContext(ctx).Error(err, "Cannot record an Event on a golden", "image", image, "reason", found.reason)
	}
}

func (r *Reporter) create(ctx context.Context, event *corev1.Event) error {
	if r.events == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := r.events.Create(ctx, event, metav1.CreateOptions{})
	return err
}
