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
	// Objects that are kept.
	Objects int
	// LastEvent is when the last object or list arrived.
	LastEvent time.Time
	// LastError is what went wrong last, and may be over.
	LastError error
}

// source is one kind: where it is read from and how that goes. The Inventory's lock guards all but the
// first three fields.
type source struct {
	name          string
	listerWatcher cache.ListerWatcherWithContext
	store         cache.ReflectorStore

	synced bool
	// failingSince is zero while the source works.
	failingSince time.Time
	lastEvent    time.Time
	lastError    error
	readable     bool
	since        time.Time
	objects      func() int
}

// settled is false until the first list has arrived or failed.
func (s *source) settled() bool { return s.synced || s.lastError != nil }

// readableAt tells whether the source is readable, and when that ends by itself; zero for never.
func (s *source) readableAt(now time.Time, grace time.Duration) (readable bool, until time.Time) {
	switch {
	case !s.synced:
		return false, time.Time{}
	case s.failingSince.IsZero():
		return true, time.Time{}
	}
	until = s.failingSince.Add(grace)
	return now.Before(until), until
}

func (s *source) succeeded(now time.Time) {
	s.failingSince = time.Time{}
	s.lastEvent = now
}

func (s *source) failed(now time.Time, err error) {
	s.lastError = err
	if s.failingSince.IsZero() {
		s.failingSince = now
	}
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
	}
}

const (
	// retryAtLeast bounds the time between two tries, so that a kind that appears is soon found.
	retryAtLeast = 10 * time.Second
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
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
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
		ListWithContextFunc: s.listerWatcher.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := s.listerWatcher.WatchWithContext(ctx, options)
			switch isList := ptr.Deref(options.SendInitialEvents, false); {
			case isList:
				return w, final(err)
			case err != nil:
				i.sourceFailed(ctx, s, err)
			default:
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
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // a list follows
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.failingSince.IsZero() {
		klog.FromContext(ctx).Info("Cannot read from the source, will try again", "err", err)
	}
	s.failed(i.clock.Now(), err)
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
			logger.Error(s.lastError, "The source cannot be read any more")
		}
	}
	return next
}
