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

package view

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// askAgainPeriod is how long a watch waits at most until it asks again what its caller may see. How old an
	// answer is depends on the authorizer's cache, too.
	askAgainPeriod = 2 * time.Second
	// answerTimeout is how long a watch goes on with what it knows while it asks again.
	answerTimeout = 8 * time.Second
	// refusalsPerSecond is a quarter of what upstream lets through to the API server.
	refusalsPerSecond = 50
	// resultBuffer lets the handler of a watch write several events before it flushes.
	resultBuffer = 32
)

// viewChanged makes a client list again. A MODIFIED with the version that the client has already would be
// passed over by informers, and would take the watch back to an older version.
func viewChanged() error {
	return apierrors.NewResourceExpired("what you may see has changed; list again")
}

// Watch streams the changes of the objects that the options select, as far as the caller can see a change.
//
// What the caller may see does not change within a watch: when it does, the watch ends with 410.
func (s *Store) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	caller := s.view.newCaller(ctx)
	ctx, end := context.WithCancelCause(ctx)
	source, err := s.store.Watch(ctx, options)
	if err != nil {
		end(nil)
		return nil, err
	}
	w := &watcher{source: source, caller: caller, end: end, result: source.ResultChan(), stopped: make(chan struct{})}
	if caller.seesAll(ctx) {
		w.running.Go(func() { w.askAgain(ctx) })
		return w, nil
	}
	inSight, err := s.inSight(ctx, options)
	if err != nil {
		w.Stop()
		return nil, err
	}
	result := make(chan watch.Event, resultBuffer)
	w.result = result
	w.running.Go(func() { w.forward(ctx, inSight, result) })
	return w, nil
}

// inSight returns the pools of the objects that the options select, which the client may know from a list.
func (s *Store) inSight(ctx context.Context, options *internalversion.ListOptions) ([]poolFields, error) {
	selected := &internalversion.ListOptions{}
	if options != nil {
		selected.LabelSelector, selected.FieldSelector = options.LabelSelector, options.FieldSelector
	}
	list, err := s.store.List(ctx, selected)
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(list)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return fields, nil
}

// watcher passes on the events of a source. Who sees all receives them from the source itself.
type watcher struct {
	source watch.Interface
	caller *Caller
	result <-chan watch.Event

	// end ends the source with an error.
	end     context.CancelCauseFunc
	stop    sync.Once
	stopped chan struct{}
	running sync.WaitGroup
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface. It returns when all that the watch started has ended.
func (w *watcher) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.end(nil)
	w.source.Stop()
	w.running.Wait()
}

// askAgain ends the watch when an answer changes.
func (w *watcher) askAgain(ctx context.Context) {
	timer := time.NewTimer(untilNextQuestion())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if w.caller.askAgain(ctx) {
				w.end(viewChanged())
				return
			}
			timer.Reset(untilNextQuestion())
		}
	}
}

// untilNextQuestion is never the same for long, so that no watch finds what all watches share always spent.
func untilNextQuestion() time.Duration { return wait.Jitter(askAgainPeriod/2, 1) }

func (w *watcher) forward(ctx context.Context, inSight []poolFields, result chan<- watch.Event) {
	defer close(result)
	w.caller.learn(ctx, inSight)
	w.running.Go(func() { w.askAgain(ctx) })
	for e := range w.source.ResultChan() {
		if !w.filter(ctx, &e) {
			continue
		}
		select {
		case result <- e:
		case <-w.stopped:
			return
		}
	}
}

// filter makes of an event what the caller may see of it, and returns false when that is nothing.
func (w *watcher) filter(ctx context.Context, e *watch.Event) bool {
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	default:
		return true
	}
	before, now := states(e.Object)
	for _, obj := range []runtime.Object{before, now} {
		if obj == nil {
			continue
		}
		if _, err := w.caller.filter(ctx, obj); err != nil {
			status := apierrors.NewInternalError(err).Status()
			e.Type, e.Object = watch.Error, &status
			return true
		}
	}
	e.Object = now
	return e.Type != watch.Modified || before == nil || !readsTheSame(before, now)
}

// shared is how an event holds what all watchers are sent.
type shared interface {
	// ShallowCopy returns the object after the event. Its outermost struct is the caller's.
	ShallowCopy() runtime.Object
	// ShallowPrevious returns the object before the event, likewise; nil where it is not known.
	ShallowPrevious() runtime.Object
}

// states returns what an object was before an event, if that is known, and what it is now.
func states(obj runtime.Object) (before, now runtime.Object) {
	switch o := obj.(type) {
	case shared:
		return o.ShallowPrevious(), o.ShallowCopy()
	case runtime.CacheableObject:
		return nil, o.GetObject()
	}
	return nil, obj
}

// readsTheSame tells whether two states of an object differ in nothing but the version. It gives the first
// the version of the second.
func readsTheSame(before, now runtime.Object) bool {
	b, err := meta.Accessor(before)
	if err != nil {
		return false
	}
	n, err := meta.Accessor(now)
	if err != nil {
		return false
	}
	b.SetResourceVersion(n.GetResourceVersion())
	return equality.Semantic.DeepEqual(before, now)
}
