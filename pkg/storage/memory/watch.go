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
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// resultBuffer lets the handler of a watch write several events before it flushes, which it does
	// whenever it finds the channel empty.
	resultBuffer = 32
	// readAhead is how many events a watcher takes out of the log at a time.
	readAhead = 32
	// beforeDeadline is how long before its end a watch gets a last bookmark.
	beforeDeadline = 2 * time.Second
)

// Watch implements storage.Interface.
//
// Once the request is understood, an error is an event of the stream. So is the cause for which ctx is
// canceled, if it is an API status: it takes the place of all that waits to be read.
func (s *Storage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := s.prepare(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rv, err := s.parseVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		log: s.log, newFunc: s.newFunc, versioner: s.versioner, clock: s.clock, period: s.bookmarkPeriod,
		key: key, recursive: opts.Recursive, pred: opts.Predicate,
		bookmarks:   opts.Predicate.AllowWatchBookmarks || opts.ProgressNotify,
		initialDone: opts.Predicate.AllowWatchBookmarks && ptr.Deref(opts.SendInitialEvents, false),
		result:      make(chan watch.Event, resultBuffer),
	}
	if err := s.awaitVersion(ctx, rv); err != nil {
		return errorWatch(err), nil
	}
	if err := w.start(rv, ptr.Deref(opts.SendInitialEvents, rv == 0)); err != nil {
		return errorWatch(err), nil
	}
	ctx, w.cancel = context.WithCancel(ctx)
	s.log.watchers.Add(1)
	go w.run(ctx)
	return w, nil
}

// watcher is one watch: a goroutine with a cursor into the log. Nothing is queued for it, so that
// one that nobody reads delays no other, and it ends with 410 when the log has forgotten the
// events that come next.
type watcher struct {
	log       *Log
	newFunc   func() runtime.Object
	versioner storage.Versioner
	clock     clock.Clock
	period    time.Duration // of bookmarks

	key         string
	recursive   bool
	pred        storage.SelectionPredicate
	bookmarks   bool
	initialDone bool // a bookmark says when the initial events are over

	initial []*entry
	cursor  uint64 // every event up to here is in result, or not for this watcher

	cancel context.CancelFunc
	result chan watch.Event
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface. The channel is closed when the goroutine is done.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// start decides where the watcher begins.
func (w *watcher) start(rv uint64, withInitial bool) (err error) {
	switch {
	case withInitial:
		w.initial, w.cursor, err = w.log.snapshot(w.key, "", 0)
	case rv == 0:
		w.cursor = w.log.ResourceVersion()
	default:
		w.cursor = rv
		_, _, _, err = w.log.since(rv, nil)
	}
	return err
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.result)
	defer w.sendCause(ctx)
	defer w.log.watchers.Add(-1)
	defer w.cancel()
	if !w.sendInitial(ctx) {
		return
	}
	utilflowcontrol.WatchInitialized(ctx)

	var due <-chan time.Time
	rearm := func() {}
	if w.bookmarks {
		timer := w.clock.NewTimer(w.untilBookmark(ctx))
		defer timer.Stop()
		due, rearm = timer.C(), func() { timer.Reset(w.untilBookmark(ctx)) }
	}
	events := make([]*event, 0, readAhead)
	for {
		var rv uint64
		var changed <-chan struct{}
		var err error
		events, rv, changed, err = w.log.since(w.cursor, events[:0])
		if err != nil {
			w.log.overtaken.Add(1)
			w.send(ctx, errorEvent(err))
			return
		}
		for _, e := range events {
			if !w.deliver(ctx, e) {
				return
			}
		}
		if len(events) > 0 {
			clear(events)
			changed = w.log.past // look again at once
		}
		if rv != w.cursor {
			w.cursor = rv
			if w.bookmarks && !w.sendBookmark(ctx, false) {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			if !w.sendBookmark(ctx, false) {
				return
			}
			rearm()
		case <-changed:
		}
	}
}

func (w *watcher) sendInitial(ctx context.Context) bool {
	for _, e := range w.initial {
		if w.matches(e) && !w.send(ctx, watch.Event{Type: watch.Added, Object: e.shared}) {
			return false
		}
	}
	w.initial = nil
	return !w.initialDone || w.sendBookmark(ctx, true)
}

// deliver sends what an event means to this watcher: objects come and go as they start and stop to
// match.
func (w *watcher) deliver(ctx context.Context, e *event) bool {
	before, now := w.matches(e.prev), w.matches(e.cur)
	sent := true
	switch {
	case now && before:
		sent = w.send(ctx, watch.Event{Type: watch.Modified, Object: e.shared})
	case now:
		sent = w.send(ctx, watch.Event{Type: watch.Added, Object: e.shared})
	case before && e.cur == nil:
		sent = w.send(ctx, watch.Event{Type: watch.Deleted, Object: e.shared})
	case before:
		last := shallowCopy(e.prev.obj)
		if err := w.versioner.UpdateObject(last, e.rv); err != nil {
			w.send(ctx, errorEvent(err))
			return false
		}
		sent = w.send(ctx, watch.Event{Type: watch.Deleted, Object: last})
	}
	w.cursor = e.rv
	return sent
}

func (w *watcher) matches(e *entry) bool {
	switch {
	case e == nil:
		return false
	case w.recursive && !strings.HasPrefix(e.key, w.key), !w.recursive && e.key != w.key:
		return false
	}
	return selects(&w.pred, e)
}

func (w *watcher) sendBookmark(ctx context.Context, initialDone bool) bool {
	obj := w.newFunc()
	err := w.versioner.UpdateObject(obj, w.cursor)
	if err == nil && initialDone {
		err = storage.AnnotateInitialEventsEndBookmark(obj)
	}
	if err != nil {
		w.send(ctx, errorEvent(err))
		return false
	}
	return w.send(ctx, watch.Event{Type: watch.Bookmark, Object: obj})
}

func (w *watcher) send(ctx context.Context, e watch.Event) bool {
	select {
	case w.result <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// sendCause sends the API status for which ctx was canceled.
func (w *watcher) sendCause(ctx context.Context) {
	var status apierrors.APIStatus
	cause := context.Cause(ctx)
	if !errors.As(cause, &status) {
		return
	}
	for len(w.result) > 0 {
		select {
		case <-w.result:
		default:
		}
	}
	w.result <- errorEvent(cause) // there is room, since nobody else sends
}

// untilBookmark is the period, or what is left until shortly before the watch times out.
func (w *watcher) untilBookmark(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		if left := deadline.Sub(w.clock.Now()) - beforeDeadline; left > 0 {
			return min(left, w.period)
		}
	}
	return w.period
}

func errorWatch(err error) watch.Interface {
	result := make(chan watch.Event, 1)
	result <- errorEvent(err)
	close(result)
	return watch.NewProxyWatcher(result)
}

func errorEvent(err error) watch.Event {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	out := status.Status()
	return watch.Event{Type: watch.Error, Object: &out}
}
