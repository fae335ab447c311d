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

package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// source is the list-watch of one kind. It keeps no history: a watch starts with the state of the moment,
// or where a list has just ended. The objects that it hands out are shared and must not be modified.
//
// client-go's FakeControllerSource would keep every change for ever, and writes into the objects that it
// has already handed out.
type source struct {
	mu       sync.Mutex
	version  uint64
	objects  map[types.NamespacedName]object
	watchers map[*watcher]struct{}
	// written are the names that a client has written to. What files say of them does not count any more.
	written sets.Set[types.NamespacedName]
}

var _ cache.ListerWatcherWithContext = &source{}

func newSource() *source {
	return &source{
		version:  1,
		objects:  map[types.NamespacedName]object{},
		watchers: map[*watcher]struct{}{},
		written:  sets.New[types.NamespacedName](),
	}
}

// replace makes objects the whole content, and passes the difference on.
func (s *source) replace(objects map[types.NamespacedName]object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, old := range s.objects {
		if o, ok := objects[name]; (!ok || o.GetUID() != old.GetUID()) && !s.written.Has(name) {
			s.remove(name)
		}
	}
	for name, o := range objects {
		if !s.written.Has(name) {
			s.put(name, o)
		}
	}
}

// put makes o the current object of that name, unless it says what that says.
func (s *source) put(name types.NamespacedName, o object) {
	event := watch.Added
	if old, ok := s.objects[name]; ok {
		o.SetResourceVersion(old.GetResourceVersion())
		if equality.Semantic.DeepEqual(o, old) {
			return
		}
		event = watch.Modified
	}
	s.objects[name] = o
	s.send(event, o)
}

func (s *source) remove(name types.NamespacedName) {
	last := s.objects[name].DeepCopyObject().(object)
	delete(s.objects, name)
	s.send(watch.Deleted, last)
}

// send gives o the next version and passes it on.
func (s *source) send(event watch.EventType, o object) {
	s.version++
	o.SetResourceVersion(s.resourceVersion())
	for w := range s.watchers {
		select {
		case w.result <- watch.Event{Type: event, Object: o}:
		case <-w.stopped:
			delete(s.watchers, w)
		}
	}
}

func (s *source) resourceVersion() string { return strconv.FormatUint(s.version, 10) }

// ListWithContext returns all objects.
func (s *source) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: s.resourceVersion()}}
	for _, o := range s.objects {
		list.Items = append(list.Items, o)
	}
	return list, nil
}

// WatchWithContext continues from a list if nothing has happened since, or streams one.
func (s *source) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var initial []watch.Event
	switch {
	case ptr.Deref(options.SendInitialEvents, false):
		initial = s.initialEvents()
	case options.ResourceVersion != s.resourceVersion():
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("the version is %d, not %s", s.version, options.ResourceVersion))
	}
	w := newWatcher(initial)
	s.watchers[w] = struct{}{}
	return w, nil
}

// initialEvents are a list as a watch has it.
func (s *source) initialEvents() []watch.Event {
	events := make([]watch.Event, 0, len(s.objects)+1)
	for _, o := range s.objects {
		events = append(events, watch.Event{Type: watch.Added, Object: o})
	}
	return append(events, watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: s.resourceVersion(),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}})
}

// watcher is a watch of a source.
type watcher struct {
	result  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

// watchBuffer is how many events a watcher may lag behind before its source waits for it.
const watchBuffer = 100

func newWatcher(initial []watch.Event) *watcher {
	w := &watcher{result: make(chan watch.Event, len(initial)+watchBuffer), stopped: make(chan struct{})}
	for _, event := range initial {
		w.result <- event
	}
	return w
}

// ResultChan never closes.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch. The source forgets it with the next event.
func (w *watcher) Stop() { w.stop.Do(func() { close(w.stopped) }) }
