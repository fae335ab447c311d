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
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// SourceHealth says how one kind is doing.
type SourceHealth struct {
	// Name of the kind's resource.
	Name string
	// Synced is true once the kind was read.
	Synced bool
	// Readable is true while what is known of the kind is current, give or take the grace period.
	Readable bool
	// Since is when Readable became what it is; zero for a source that was never readable.
	Since time.Time
	// Malformed is true while what was read last is not what it should be, and does not count.
	Malformed bool
	// Objects that are kept.
	Objects int
	// LastEvent is when the last object or list arrived.
	LastEvent time.Time
	// LastError is what went wrong last, and may be over.
	LastError error
	// Lists that were begun, and Failures of lists and watches, since the start.
	Lists, Failures uint64
}

// source is one kind: where it is read from and how that goes. The Inventory's lock guards all but the
// first three fields.
type source struct {
	name          string
	listerWatcher cache.ListerWatcherWithContext
	store         cache.ReflectorStore

	synced bool
	// version is how far the source has come; empty until the first list has arrived.
	version string
	// staleSince is when the source failed or began to list again; zero while it is current.
	staleSince time.Time
	lastEvent  time.Time
	lastError  error
	failedAt   time.Time
	readable   bool
	since      time.Time
	objects    func() int

	lists, failures uint64
}

// settled is false until the first list has arrived or failed.
func (s *source) settled() bool { return s.synced || s.lastError != nil }

// readableAt tells whether the source is readable, and when that ends by itself; zero for never.
func (s *source) readableAt(now time.Time, grace time.Duration) (readable bool, until time.Time) {
	switch {
	case !s.synced:
		return false, time.Time{}
	case s.staleSince.IsZero():
		return true, time.Time{}
	}
	until = s.staleSince.Add(grace)
	return now.Before(until), until
}

func (s *source) succeeded(now time.Time) {
	s.staleSince = time.Time{}
	s.lastEvent = now
}

// listing is told when a list begins. Until it has arrived, what is known may be old.
func (s *source) listing(now time.Time) {
	if s.staleSince.IsZero() {
		s.staleSince = now
	}
}

// failed is true for the first failure since the source was current.
func (s *source) failed(now time.Time, err error) (first bool) {
	s.listing(now)
	first = s.failedAt.Before(s.staleSince)
	s.lastError, s.failedAt = err, now
	s.failures++
	return first
}

// errIncomplete is what is wrong with a source that does not fail.
var errIncomplete = errors.New("a list has not arrived in time")

// explain makes sure that there is an error for a source that is not current.
func (s *source) explain(now time.Time) error {
	if s.lastError == nil || s.failedAt.Before(s.staleSince) {
		s.lastError, s.failedAt = errIncomplete, now
	}
	return s.lastError
}

func (s *source) health() SourceHealth {
	return SourceHealth{
		Name:      s.name,
		Synced:    s.synced,
		Readable:  s.readable,
		Since:     s.since,
		Objects:   s.objects(),
		LastEvent: s.lastEvent,
		LastError: s.lastError,
		Lists:     s.lists,
		Failures:  s.failures,
	}
}

const (
	// retryAtLeast bounds the time between two tries. It is half of the default grace period, so that a
	// source which fails for less than the other half never counts as not readable.
	retryAtLeast = DefaultGracePeriod / 2
	backoffReset = 2 * time.Minute
)

// backoff between tries doubles up to half of retryAtLeast; the jitter adds up to as much again.
var backoff = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Steps: 10, Cap: retryAtLeast / 2, Jitter: 1}

// follow keeps the source's store up to date until ctx is done.
func (i *Inventory) follow(ctx context.Context, s *source) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "source", s.name)
	ctx = klog.NewContext(ctx, logger)
	reflector := cache.NewReflectorWithOptions(i.observed(s), nil, s.store, cache.ReflectorOptions{
		Logger:          &logger,
		Name:            "inventory",
		TypeDescription: s.name,
		Clock:           i.clock,
		Backoff:         ptr.To(backoff),
	})
	delay := backoff.DelayWithReset(i.clock, backoffReset).Timer(i.clock)
	defer delay.Stop()
	for {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil {
			i.sourceFailed(ctx, s, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-delay.C():
			delay.Next()
		}
	}
}

// observed is the source's list-watch for a reflector that reports what only the reflector would see: it
// goes on with a watch after some errors without ever returning them.
func (i *Inventory) observed(s *source) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			i.sourceListing(s)
			return s.listerWatcher.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if ptr.Deref(options.SendInitialEvents, false) {
				i.sourceListing(s)
				w, err := s.listerWatcher.WatchWithContext(ctx, options)
				return w, final(err)
			}
			w, err := s.listerWatcher.WatchWithContext(ctx, options)
			if err != nil {
				i.sourceFailed(ctx, s, err)
			} else {
				i.sourceSucceeded(s)
			}
			return w, err
		},
	}, s.listerWatcher)
}

// final hides from a reflector that an attempt to stream a list may be repeated: it would wait without
// heeding its context. It goes on with a plain list instead, whose outcome counts.
func final(err error) error {
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return errors.New(err.Error())
	}
	return err
}

func (i *Inventory) sourceFailed(ctx context.Context, s *source, err error) {
	isOver := ctx.Err() != nil
	listFollows := apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	if isOver || listFollows {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.failed(i.clock.Now(), err) {
		klog.FromContext(ctx).Info("Cannot read from the source, will try again", "err", err)
	}
	i.notify()
}

func (i *Inventory) sourceListing(s *source) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.lists++
	s.listing(i.clock.Now())
	i.notify()
}

func (i *Inventory) sourceSucceeded(s *source) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.succeeded(i.clock.Now())
	i.notify()
}

// refreshReadable finds out which sources can be read now, makes every image dirty if that changed, and
// returns when it will change by itself; zero for never.
func (i *Inventory) refreshReadable(ctx context.Context, now time.Time) (next time.Time) {
	for _, s := range i.sources {
		readable, until := s.readableAt(now, i.grace)
		if readable {
			next = earliest(next, until)
		}
		if readable == s.readable {
			continue
		}
		s.readable, s.since = readable, now
		i.index.markAll()
		logger := klog.FromContext(ctx).WithValues("source", s.name, "objects", s.objects())
		if readable {
			logger.Info("The source can be read")
		} else {
			logger.Error(s.explain(now), "The source cannot be read any more")
		}
	}
	return next
}
