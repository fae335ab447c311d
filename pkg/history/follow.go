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

package history

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

const (
	// answerTimeout bounds how long a replica may take to answer a list.
	answerTimeout = 2 * time.Second
	probePeriod   = time.Second
)

// Feed is a resource of another replica as its clients list and watch it. Whoever does so sees all of it.
type Feed struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Own turns an object of the feed into one that a log can keep, and returns its key there.
	Own func(runtime.Object) (key string, own runtime.Object, err error)
}

// follow publishes in the logs what another replica publishes, until ctx is done or the other does not answer. It
// returns whether the logs have been in the other's history.
func follow(ctx context.Context, feeds []Feed, journal *Journal) (joined bool, err error) {
	if err := probe(ctx, feeds[0]); err != nil {
		return false, err
	}
	journal.Follow()
	watches := make([]watch.Interface, len(feeds))
	for i, feed := range feeds {
		if watches[i], err = join(ctx, feed, journal.logs[i]); err != nil {
			return false, err
		}
		defer watches[i].Stop()
	}
	journal.Open()

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return keepProbing(ctx, feeds[0]) })
	for i, feed := range feeds {
		group.Go(func() error { return adopt(ctx, watches[i], feed, journal.logs[i]) })
	}
	return true, group.Wait()
}

func probe(ctx context.Context, feed Feed) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := feed.List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// keepProbing returns when the replica does not answer. A connection can stay open for long after the other end
// is gone.
func keepProbing(ctx context.Context, feed Feed) error {
	return wait.PollUntilContextCancel(ctx, probePeriod, false, func(ctx context.Context) (bool, error) {
		return false, probe(ctx, feed)
	})
}

// join brings the log into the history of the feed, and watches the feed from there. Where what the log holds is
// in that history it stays, and the watch starts with what it misses.
func join(ctx context.Context, feed Feed, log *memory.Log) (watch.Interface, error) {
	answerBy, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	version := strconv.FormatUint(log.ResourceVersion(), 10)
	_, err := feed.List(answerBy, metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 1,
	})
	if apierrors.IsResourceExpired(err) {
		version, err = replace(answerBy, feed, log)
	}
	if err != nil {
		return nil, err
	}
	return feed.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
}

func replace(ctx context.Context, feed Feed, log *memory.Log) (version string, err error) {
	list, err := feed.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	version = accessor.GetResourceVersion()
	rv, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return "", err
	}
	objects := map[string]runtime.Object{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		key, own, err := feed.Own(item)
		objects[key] = own
		return err
	})
	if err != nil {
		return "", err
	}
	return version, log.Replace(objects, rv)
}

func adopt(ctx context.Context, w watch.Interface, feed Feed, log *memory.Log) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-w.ResultChan():
			if !open {
				return fmt.Errorf("the watch at %d ended", log.ResourceVersion())
			}
			if err := adoptEvent(event, feed, log); err != nil {
				return err
			}
		}
	}
}

func adoptEvent(event watch.Event, feed Feed, log *memory.Log) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	accessor, err := meta.Accessor(event.Object)
	if err != nil {
		return err
	}
	rv, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	if event.Type == watch.Bookmark {
		log.Reach(rv)
		return nil
	}
	key, own, err := feed.Own(event.Object)
	if err != nil {
		return err
	}
	if event.Type == watch.Deleted {
		own = nil
	}
	return log.Adopt(key, own, rv)
}
