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
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
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
	seesAll := caller.seesAll(ctx)
	below := options
	if !seesAll {
		below = s.inAnyView(options)
	}
	source, err := s.store.Watch(ctx, below)
	if err != nil {
		end(nil)
		return nil, err
	}
	w := &watcher{source: source, caller: caller, end: end, result: source.ResultChan()}
	if seesAll {
		w.running.Go(func() { w.askAgain(ctx) })
		return w, nil
	}
	if s.hides {
		w.selects = ptr.To(s.predicate(options))
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
	selected := s.inAnyView(options)
	list, err := s.store.List(ctx, &internalversion.ListOptions{LabelSelector: selected.LabelSelector, FieldSelector: selected.FieldSelector})
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
	// selects what is watched of what is shown, for a kind whose objects may be hidden; nil for any other.
	selects *storage.SelectionPredicate
	result  <-chan watch.Event

	// end ends the source with an error.
	end     context.CancelCauseFunc
	running sync.WaitGroup
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface. It returns when all that the watch started has ended.
func (w *watcher) Stop() {
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

func (w *watcher) forward(ctx context.Context, inSight []poolFields, result chan watch.Event) {
	defer close(result)
	w.caller.learn(ctx, inSight)
	w.running.Go(func() { w.askAgain(ctx) })
	for e := range w.source.ResultChan() {
		switch isOver := ctx.Err() != nil; {
		case isOver && e.Type == watch.Error:
			discard(result)
			result <- e // there is room
			return
		case isOver || !w.filter(ctx, &e):
			continue
		}
		select {
		case result <- e:
			if e.Type == watch.Error {
				return
			}
		case <-ctx.Done():
		}
	}
}

// discard takes out what nobody has read yet. It was made for a view that has become another.
func discard(events <-chan watch.Event) {
	for {
		select {
		case <-events:
		default:
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
	if w.selects != nil {
		return w.filterHidden(ctx, e)
	}
	before, now := states(e.Object)
	for _, obj := range []runtime.Object{before, now} {
		if obj == nil {
			continue
		}
		if _, err := w.caller.filter(ctx, obj); err != nil {
			return fail(e, apierrors.NewInternalError(err))
		}
	}
	e.Object = now
	return e.Type != watch.Modified || before == nil || !readsTheSame(before, now)
}

// filterHidden is filter for objects that come into the sight of the caller and leave it.
func (w *watcher) filterHidden(ctx context.Context, e *watch.Event) bool {
	before, now := states(e.Object)
	switch {
	case e.Type == watch.Added:
		before = nil
	case e.Type == watch.Deleted:
		before, now = now, nil
	case before == nil: // so it is not known whether the client has it
		return fail(e, apierrors.NewResourceExpired("too many changes have happened since; list again"))
	}
	before, err := w.show(ctx, before, e)
	if err != nil {
		return fail(e, apierrors.NewInternalError(err))
	}
	if now, err = w.show(ctx, now, e); err != nil {
		return fail(e, apierrors.NewInternalError(err))
	}
	switch {
	case before == nil && now == nil:
		return false
	case before == nil:
		e.Type, e.Object = watch.Added, now
	case now == nil:
		e.Type, e.Object = watch.Deleted, before
	default:
		e.Object = now
		return !readsTheSame(before, now)
	}
	return true
}

// show returns what the caller sees of an object at the version of an event; nil where that is nothing, or is not
// what is watched.
func (w *watcher) show(ctx context.Context, obj runtime.Object, e *watch.Event) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	shown, err := w.caller.filter(ctx, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if matches, err := w.selects.Matches(shown); err != nil || !matches {
		return nil, err
	}
	return shown, copyVersion(shown, e.Object)
}

// fail makes an event the end of a watch.
func fail(e *watch.Event, err apierrors.APIStatus) bool {
	status := err.Status()
	e.Type, e.Object = watch.Error, &status
	return true
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
	return copyVersion(before, now) == nil && equality.Semantic.DeepEqual(before, now)
}

func copyVersion(to, from runtime.Object) error {
	t, err := meta.Accessor(to)
	if err != nil {
		return err
	}
	f, err := meta.Accessor(from)
	if err != nil {
		return err
	}
	t.SetResourceVersion(f.GetResourceVersion())
	return nil
}
