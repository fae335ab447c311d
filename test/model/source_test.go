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

package model

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// object is what sources hold. It is not modified once it is in one.
type object interface {
	metav1.Object
	runtime.Object
}

// source is the API of one kind. It can lag behind the other kinds, repeat itself, end its watches, forget its
// history and fail.
type source struct {
	name    string
	streams bool // whether lists may be streamed

	mu      sync.Mutex
	version int
	// truth is what there is, and shown what readers are told of it.
	truth, shown map[string]object
	// late are the changes that readers are not told of yet, while the source is held.
	late []change
	held bool
	// history are the changes that readers were told of, since the oldest that a watch can go on from.
	history   []change
	compacted int
	watches   []*watch.RaceFreeFakeWatcher
	err       error
}

type change struct {
	version int
	event   watch.Event
}

var _ cache.ListerWatcherWithContext = &source{}

func newSource(name string, streams bool) *source {
	return &source{name: name, streams: streams, version: 1, truth: map[string]object{}, shown: map[string]object{}}
}

// replayLimit is how many events a watch may begin with. The channel of a watcher has room for a hundred.
const replayLimit = 50

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// IsWatchListSemanticsUnSupported tells reflectors whether they may stream lists.
func (s *source) IsWatchListSemanticsUnSupported() bool { return !s.streams }

// ListWithContext returns all objects.
func (s *source) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: s.shownVersion()}}
	for _, key := range slices.Sorted(maps.Keys(s.shown)) {
		list.Items = append(list.Items, s.shown[key])
	}
	return list, nil
}

// WatchWithContext goes on from a version, or streams a list.
func (s *source) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	w := watch.NewRaceFreeFake()
	if ptr.Deref(options.SendInitialEvents, false) {
		for _, key := range slices.Sorted(maps.Keys(s.shown)) {
			w.Add(s.shown[key])
		}
		w.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: s.shownVersion(), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	} else {
		from, err := strconv.Atoi(options.ResourceVersion)
		if err != nil || from < s.compacted {
			return nil, apierrors.NewResourceExpired(fmt.Sprintf("%s: %s is older than %d", s.name, options.ResourceVersion, s.compacted))
		}
		for _, c := range s.history {
			if c.version > from {
				w.Action(c.event.Type, c.event.Object)
			}
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

func (s *source) shownVersion() string {
	if len(s.late) > 0 {
		return strconv.Itoa(s.late[0].version - 1)
	}
	return strconv.Itoa(s.version)
}

func (s *source) get(key string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth[key]
}

// all returns what there is, by key.
func (s *source) all() []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []object
	for _, key := range slices.Sorted(maps.Keys(s.truth)) {
		out = append(out, s.truth[key])
	}
	return out
}

// put makes o the object of its name.
func (s *source) put(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	event := watch.Added
	if _, ok := s.truth[keyOf(o)]; ok {
		event = watch.Modified
	}
	s.truth[keyOf(o)] = o
	s.happened(event, o)
}

func (s *source) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.truth[key]; ok {
		delete(s.truth, key)
		s.happened(watch.Deleted, o.DeepCopyObject().(object))
	}
}

func (s *source) happened(event watch.EventType, o object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	s.late = append(s.late, change{s.version, watch.Event{Type: event, Object: o}})
	if !s.held {
		s.catchUp(true)
	}
}

// catchUp shows what is late, to watches only if it tells them.
func (s *source) catchUp(tell bool) {
	for _, c := range s.late {
		o := c.event.Object.(object)
		if c.event.Type == watch.Deleted {
			delete(s.shown, keyOf(o))
		} else {
			s.shown[keyOf(o)] = o
		}
		if tell {
			s.tell(c.event)
			s.history = append(s.history, c)
		}
	}
	s.late = nil
	for len(s.history) > replayLimit {
		s.compacted, s.history = s.history[0].version, s.history[1:]
	}
}

func (s *source) tell(e watch.Event) {
	for _, w := range s.watches {
		w.Action(e.Type, e.Object)
	}
}

// hold keeps what happens from readers until release.
func (s *source) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

func (s *source) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.catchUp(true)
}

// repeat tells watches again of an object as it is.
func (s *source) repeat(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shown) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(s.shown))
	event := []watch.EventType{watch.Added, watch.Modified}[r.IntN(2)]
	s.tell(watch.Event{Type: event, Object: s.shown[keys[r.IntN(len(keys))]]})
}

// endWatches ends them in peace: readers go on from where they are.
func (s *source) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func (s *source) end() {
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

// expire has readers list again, and find what is late without having been told of it.
func (s *source) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.catchUp(false)
	s.compacted, s.history = s.version, nil
	s.tell(watch.Event{Type: watch.Error, Object: ptr.To(apierrors.NewResourceExpired("too old").Status())})
	s.end()
}

// fail makes the source unreadable in one of several ways.
func (s *source) fail(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.IntN(3) {
	case 0:
		s.err = apierrors.NewServiceUnavailable("down")
	case 1:
		s.err = apierrors.NewForbidden(schema.GroupResource{Resource: s.name}, "", nil)
	default:
		s.err = fmt.Errorf("no such host")
	}
	s.end()
}

func (s *source) recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
}

func (s *source) failing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// isCurrent is true while a reader is told of everything at once.
func (s *source) isCurrent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil && len(s.late) == 0 &&
		slices.ContainsFunc(s.watches, func(w *watch.RaceFreeFakeWatcher) bool { return !w.IsStopped() })
}
