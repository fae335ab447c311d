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
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// DefaultWindow is how many events a log keeps unless told otherwise.
	DefaultWindow = 4096
	// DefaultWindowBytes bounds the replaced objects and the encodings that those events keep alive.
	DefaultWindowBytes = 64 << 20
)

// LogOptions configure a Log.
type LogOptions struct {
	// First is the version of the empty log, as FirstResourceVersion makes it.
	First uint64
	// Window is the number of events that are kept.
	Window int
	// WindowBytes bounds the memory that the kept events take beyond the current objects. It is
	// enforced at every event, while encodings are made after it.
	WindowBytes int64
	// Attrs returns what selectors match: labels and metadata.name by default.
	Attrs storage.AttrFunc
	// Patience is how long a request waits for a version that the log has not reached, while it adopts what
	// another publishes. Otherwise such a request is refused at once.
	Patience time.Duration
	// NotReady says why the log is not ready, for the clients that are turned away meanwhile.
	NotReady func() string
}

// Log is the versioned state of one resource. It starts empty and not ready.
//
// Apply and Remove are its only writers. Every change of content is one event and moves the
// version by one; an object whose uid changes is another object, and makes two events.
type Log struct {
	attrs       storage.AttrFunc
	notReady    func() string
	patience    time.Duration
	counterBits uint
	first       uint64

	ready     atomic.Bool
	adopts    atomic.Bool // another log publishes first
	watchers  atomic.Int64
	overtaken atomic.Int64

	// writer serializes Apply and Remove. Who holds it may read what mu guards without holding mu,
	// so that nobody who reads waits for objects to be compared.
	writer sync.Mutex

	mu        sync.RWMutex
	entries   []*entry // sorted by key
	size      int64    // of the objects in entries
	ring      ring
	lineage   lineage
	own       uint64        // the first version of the last epoch that began here
	rv        uint64        // of the newest event, or the first of an epoch that has none
	published uint64        // events since the start
	compacted uint64        // the oldest version whose successors are all in the ring
	changed   chan struct{} // closed and replaced at every event
	past      chan struct{} // closed
}

// NewLog returns an empty log that is not ready.
func NewLog(opts LogOptions) *Log {
	if opts.Window <= 0 {
		opts.Window = DefaultWindow
	}
	if opts.WindowBytes <= 0 {
		opts.WindowBytes = DefaultWindowBytes
	}
	if opts.Attrs == nil {
		opts.Attrs = storage.DefaultClusterScopedAttr
	}
	l := &Log{
		attrs:       opts.Attrs,
		notReady:    opts.NotReady,
		patience:    opts.Patience,
		counterBits: counterBits,
		first:       opts.First,
		own:         opts.First,
		ring:        ring{events: make([]*event, opts.Window), maxBytes: opts.WindowBytes},
		rv:          opts.First,
		compacted:   opts.First,
		changed:     make(chan struct{}),
		past:        make(chan struct{}),
	}
	close(l.past)
	return l
}

// Apply publishes obj at key and takes ownership of it. What reads the same as the object
// that is there already publishes nothing.
func (l *Log) Apply(key string, obj runtime.Object) (changed bool, err error) {
	l.writer.Lock()
	defer l.writer.Unlock()
	prev := l.find(key)
	if prev != nil {
		if same, err := sameContent(prev, obj); err != nil || same {
			return false, err
		}
	}
	cur, err := l.newEntry(key, obj)
	if err != nil {
		return false, err
	}
	if prev != nil && uidOf(prev.obj) != uidOf(obj) {
		if err := l.publish(key, nil); err != nil {
			return false, err
		}
	}
	if err := l.publish(key, cur); err != nil {
		return false, err
	}
	return true, nil
}

// Remove publishes that the object at key is gone.
func (l *Log) Remove(key string) (changed bool, err error) {
	l.writer.Lock()
	defer l.writer.Unlock()
	if l.find(key) == nil {
		return false, nil
	}
	if err := l.publish(key, nil); err != nil {
		return false, err
	}
	return true, nil
}

// SetReady opens the log to requests, or closes it. Watches that are open stay so.
func (l *Log) SetReady(ready bool) { l.ready.Store(ready) }

// Ready returns whether the log is open to requests.
func (l *Log) Ready() bool { return l.ready.Load() }

// Get returns the object at key, which is shared and must not be modified, nil if there is none,
// and the version of the log at which that was so.
func (l *Log) Get(key string) (obj runtime.Object, rv uint64) {
	e, rv, _ := l.get(key)
	if e == nil {
		return nil, rv
	}
	return e.obj, rv
}

// ResourceVersion returns the version of the newest event.
func (l *Log) ResourceVersion() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.rv
}

// LogStats describe a log, for metrics.
type LogStats struct {
	Ready           bool
	Objects         int
	ObjectBytes     int64 // estimated
	Window          int
	Events          int
	EventBytes      int64 // estimated; what the kept events take beyond the objects
	ResourceVersion uint64
	// Published counts the events since the start.
	Published uint64
	// CompactedResourceVersion is the oldest version from which a watch can start.
	CompactedResourceVersion uint64
	Watchers                 int64
	// Overtaken counts the watchers that were too slow for the ring, and got 410.
	Overtaken int64
}

// Stats returns the figures of this moment.
func (l *Log) Stats() LogStats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return LogStats{
		Ready:                    l.ready.Load(),
		Objects:                  len(l.entries),
		ObjectBytes:              l.size,
		Window:                   len(l.ring.events),
		Events:                   l.ring.len,
		EventBytes:               l.ring.bytes(),
		ResourceVersion:          l.rv,
		Published:                l.published,
		CompactedResourceVersion: l.compacted,
		Watchers:                 l.watchers.Load(),
		Overtaken:                l.overtaken.Load(),
	}
}

// publish makes cur the entry at key; nil removes the one that is there.
func (l *Log) publish(key string, cur *entry) error {
	if (l.rv+1)>>l.counterBits != l.rv>>l.counterBits {
		if err := l.startEpoch(); err != nil {
			return err
		}
	}
	return l.publishAt(l.rv+1, key, cur)
}

// publishAt makes cur the entry at key by the event of version rv.
func (l *Log) publishAt(rv uint64, key string, cur *entry) error {
	e := &event{rv: rv, key: key, prev: l.find(key), cur: cur}
	var obj runtime.Object
	if cur != nil {
		obj = cur.obj
	} else {
		obj = shallowCopy(e.prev.obj)
	}
	if err := (storage.APIObjectVersioner{}).UpdateObject(obj, e.rv); err != nil {
		return fmt.Errorf("versioning %s: %w", key, err)
	}
	e.shared = newSharedObject(obj, &l.ring.encoded)
	if cur != nil {
		cur.rv, cur.shared = e.rv, e.shared
		if e.prev != nil {
			e.shared.previous = e.prev.obj
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.replaceLocked(key, cur)
	if evicted := l.ring.push(e); evicted != 0 {
		l.compacted = evicted
	}
	l.rv = e.rv
	l.published++
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// startEpoch goes on with the versions of another epoch when the counter of this one is used up.
// All that a client holds is from an earlier epoch then, and expires; no object keeps a version
// that would be refused when its reader sends it back.
func (l *Log) startEpoch() error {
	rv := nextEpoch(l.rv, l.counterBits)
	entries := make([]*entry, len(l.entries))
	for i, e := range l.entries {
		renewed := *e
		renewed.obj, renewed.rv = shallowCopy(e.obj), rv
		if err := (storage.APIObjectVersioner{}).UpdateObject(renewed.obj, rv); err != nil {
			return fmt.Errorf("versioning %s: %w", e.key, err)
		}
		renewed.shared = newSharedObject(renewed.obj, &l.ring.encoded)
		renewed.shared.forget()
		entries[i] = &renewed
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring.clear()
	l.lineage = nil
	l.entries, l.own, l.rv, l.compacted = entries, rv, rv, rv
	return nil
}

func (l *Log) replaceLocked(key string, cur *entry) {
	i, found := l.search(key)
	if found {
		l.size -= l.entries[i].size
	}
	switch {
	case cur == nil:
		l.entries = slices.Delete(l.entries, i, i+1)
		return
	case found:
		l.entries[i] = cur
	default:
		l.entries = slices.Insert(l.entries, i, cur)
	}
	l.size += cur.size
}

func (l *Log) search(key string) (int, bool) { return searchEntries(l.entries, key) }

func searchEntries(entries []*entry, key string) (int, bool) {
	return slices.BinarySearchFunc(entries, key, func(e *entry, key string) int { return strings.Compare(e.key, key) })
}

func (l *Log) find(key string) *entry {
	if i, ok := l.search(key); ok {
		return l.entries[i]
	}
	return nil
}

// get returns the entry at key, the version at which it was that, and a channel that is closed
// when the log moves on.
func (l *Log) get(key string) (e *entry, rv uint64, changed <-chan struct{}) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.find(key), l.rv, l.changed
}

// checkReady returns the answer to a request that comes before the log is ready. An empty list
// would be a lie, and 429 would blame the client.
func (l *Log) checkReady() error {
	if l.ready.Load() {
		return nil
	}
	text := "the sources have not been read yet"
	if l.notReady != nil {
		text += ": " + l.notReady()
	}
	err := apierrors.NewServiceUnavailable(text)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// checkVersion returns the answer to a request that refers to a version that this log has not
// published. Zero refers to none.
func (l *Log) checkVersion(rv uint64) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.checkVersionLocked(rv)
}

func (l *Log) checkVersionLocked(rv uint64) error {
	switch {
	case rv == 0:
		return nil
	case rv < l.rv && l.lineage.holds(rv):
		return nil
	case rv>>l.counterBits != l.rv>>l.counterBits:
		return errForeignVersion(rv, l.rv)
	case rv > l.rv:
		// Seconds to retry after would make clients repeat the request many times before they give up.
		return storage.NewTooLargeResourceVersionError(rv, l.rv, 0)
	}
	return nil
}

// snapshot returns the entries whose keys have prefix, from start on and sorted by key, as they
// were at version at, or are now if it is zero, and the version that they belong to.
func (l *Log) snapshot(prefix, start string, at uint64) ([]*entry, uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	entries, rv := l.entries, l.rv
	if at != 0 && at != l.rv {
		if err := l.checkVersionLocked(at); err != nil {
			return nil, 0, err
		}
		if at < l.compacted {
			return nil, 0, errListTooOld(at, l.compacted)
		}
		entries, rv = l.revertLocked(at), at
	}
	first, _ := searchEntries(entries, max(prefix, start))
	entries = entries[first:]
	end, _ := slices.BinarySearchFunc(entries, prefix, func(e *entry, prefix string) int {
		if strings.HasPrefix(e.key, prefix) {
			return -1
		}
		return 1
	})
	return slices.Clone(entries[:end]), rv, nil
}

// revertLocked returns the entries with all events after at undone.
func (l *Log) revertLocked(at uint64) []*entry {
	before := map[string]*entry{}
	for i := l.ring.len - 1; i >= 0 && l.ring.at(i).rv > at; i-- {
		before[l.ring.at(i).key] = l.ring.at(i).prev
	}
	entries := make([]*entry, 0, len(l.entries)+len(before))
	for _, e := range l.entries {
		if _, changed := before[e.key]; !changed {
			entries = append(entries, e)
		}
	}
	for _, e := range before {
		if e != nil {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, byKey)
	return entries
}

func byKey(a, b *entry) int { return strings.Compare(a.key, b.key) }

// since appends to events those that follow cursor, up to its capacity, and returns the version that they lead to and a
// channel that is closed when there is another. Where nothing follows, the version is of another epoch or it is cursor.
func (l *Log) since(cursor uint64, events []*event) (_ []*event, rv uint64, changed <-chan struct{}, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err := l.checkVersionLocked(cursor); err != nil {
		return nil, 0, nil, err
	}
	if cursor < l.compacted {
		return nil, 0, nil, errWatchTooOld(cursor, l.compacted)
	}
	next := sort.Search(l.ring.len, func(i int) bool { return l.ring.at(i).rv > cursor })
	for i := next; i < l.ring.len && len(events) < cap(events); i++ {
		events = append(events, l.ring.at(i))
	}
	if len(events) > 0 {
		return events, events[len(events)-1].rv, l.changed, nil
	}
	return events, l.rv, l.changed, nil
}

// removal returns the event by which the object at key went away after a version, nil if it is not
// in the ring.
func (l *Log) removal(key string, after uint64) *event {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for i := range l.ring.len {
		if e := l.ring.at(i); e.rv > after && e.key == key && e.cur == nil {
			return e
		}
	}
	return nil
}
