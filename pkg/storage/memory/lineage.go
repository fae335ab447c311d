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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// maxAncestors bounds how many earlier epochs a log remembers.
const maxAncestors = 64

// span is the part of an epoch that belongs to this log's history, both ends included. What the epoch's
// own process published after last was never seen here.
type span struct{ first, last uint64 }

// lineage is the epochs that the current one continues, oldest first.
type lineage []span

// holds returns whether rv is in the history before the current epoch.
func (l lineage) holds(rv uint64) bool {
	return slices.ContainsFunc(l, func(s span) bool { return s.first <= rv && rv <= s.last })
}

// Adopt publishes what another log published: the event by which obj came to key, or left it if obj is nil,
// at version rv. It takes ownership of obj. An event of an epoch other than the newest event's continues it.
func (l *Log) Adopt(key string, obj runtime.Object, rv uint64) error {
	l.writer.Lock()
	defer l.writer.Unlock()
	if rv <= l.rv {
		return fmt.Errorf("event %d of %s does not follow %d", rv, key, l.rv)
	}
	l.adopts.Store(true)
	l.continueAs(firstOfEpoch(rv>>l.counterBits, l.counterBits))
	if obj == nil {
		return l.publishAt(rv, key, nil)
	}
	cur, err := l.newEntry(key, obj)
	if err != nil {
		return err
	}
	return l.publishAt(rv, key, cur)
}

// Reach takes over that version rv is of the present state, as the first of an epoch that continues the newest event's.
func (l *Log) Reach(rv uint64) {
	l.writer.Lock()
	defer l.writer.Unlock()
	if rv > l.rv {
		l.adopts.Store(true)
		l.continueAs(firstOfEpoch(rv>>l.counterBits, l.counterBits))
	}
}

// Continue lets the log go on with an epoch of its own after what it adopted: that of first, or one of the same
// identity that is later than any before. Versions that others issued and that were not adopted expire. Where
// nothing was adopted since the last epoch of its own, that goes on.
func (l *Log) Continue(first uint64) {
	l.writer.Lock()
	defer l.writer.Unlock()
	l.adopts.Store(false)
	if l.rv>>l.counterBits == l.own>>l.counterBits {
		return
	}
	for first <= max(l.rv, l.own) {
		first = nextEpoch(first, l.counterBits)
	}
	l.own = first
	l.continueAs(first)
}

// continueAs makes first the version of the present state, unless that has a version of the same epoch.
func (l *Log) continueAs(first uint64) {
	if first>>l.counterBits == l.rv>>l.counterBits {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lineage = append(l.lineage, span{first: firstOfEpoch(l.rv>>l.counterBits, l.counterBits), last: l.rv})
	if len(l.lineage) > maxAncestors {
		l.lineage = slices.Delete(l.lineage, 0, 1)
	}
	l.rv = first
	close(l.changed)
	l.changed = make(chan struct{})
}

// Replace makes the objects, by key, the present state at version rv, with no history: what clients hold of
// before expires. It takes ownership of the objects.
func (l *Log) Replace(objects map[string]runtime.Object, rv uint64) error {
	l.writer.Lock()
	defer l.writer.Unlock()
	entries := make([]*entry, 0, len(objects))
	for key, obj := range objects {
		e, err := l.newEntry(key, obj)
		if err != nil {
			return err
		}
		if e.rv, err = (storage.APIObjectVersioner{}).ObjectResourceVersion(obj); err != nil {
			return fmt.Errorf("reading the version of %s: %w", key, err)
		}
		e.shared = newSharedObject(obj, &l.ring.encoded)
		e.shared.forget()
		entries = append(entries, e)
	}
	slices.SortFunc(entries, byKey)
	l.adopts.Store(true)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring.clear()
	l.lineage = nil
	l.entries, l.size = entries, 0
	for _, e := range entries {
		l.size += e.size
	}
	l.rv, l.compacted = rv, rv
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// Shows returns whether clients read at key what they would read from the object that next makes of what is there;
// from nothing where next is nil. The channel is closed when the log moves on.
func (l *Log) Shows(key string, next func(published runtime.Object) runtime.Object) (bool, <-chan struct{}, error) {
	e, _, changed := l.get(key)
	if e == nil || next == nil {
		return e == nil && next == nil, changed, nil
	}
	same, err := sameContent(e, next(e.obj))
	return same, changed, err
}

// Keys returns the keys of the present state.
func (l *Log) Keys() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	keys := make([]string, len(l.entries))
	for i, e := range l.entries {
		keys[i] = e.key
	}
	return keys
}

func (l *Log) newEntry(key string, obj runtime.Object) (*entry, error) {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // encoders set it, on copies
	labels, fields, err := l.attrs(obj)
	if err != nil {
		return nil, fmt.Errorf("reading the attributes of %s: %w", key, err)
	}
	return &entry{key: key, obj: obj, labels: labels, fields: fields, size: settle(obj)}, nil
}
