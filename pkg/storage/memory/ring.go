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
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// entry is an object as it was published. It is immutable.
type entry struct {
	key    string
	obj    runtime.Object
	rv     uint64
	labels labels.Set
	fields fields.Set
	size   int64
	shared *sharedObject // obj, encoded once for all watchers
}

// event is the step from one version to the next. It is immutable.
type event struct {
	rv   uint64
	key  string
	prev *entry // nil: the object is new
	cur  *entry // nil: the object is gone
	// shared is the object after the event; of one that is gone, the last state with the event's version.
	shared *sharedObject
}

// ring keeps the newest events, bounded in number and in the bytes that it alone keeps alive:
// replaced objects, and encodings.
type ring struct {
	events   []*event // capacity is the bound in number
	first    int      // index of the oldest
	len      int
	replaced int64        // bytes of replaced objects
	encoded  atomic.Int64 // bytes of encodings, added to while watchers encode
	maxBytes int64
}

func (r *ring) at(i int) *event { return r.events[(r.first+i)%len(r.events)] }

func (r *ring) bytes() int64 { return r.replaced + r.encoded.Load() }

// push appends e, evicts what exceeds the bounds, and returns the version of the newest evicted
// event, zero if there is none. The newest event is kept whatever its size: a watcher that is up
// to date must not miss it.
func (r *ring) push(e *event) (evicted uint64) {
	if r.len == len(r.events) {
		evicted = r.evict()
	}
	r.events[(r.first+r.len)%len(r.events)] = e
	r.len++
	if e.prev != nil {
		r.replaced += e.prev.size
	}
	for r.len > 1 && r.bytes() > r.maxBytes {
		evicted = r.evict()
	}
	return evicted
}

func (r *ring) evict() uint64 {
	e := r.at(0)
	r.events[r.first] = nil
	r.first = (r.first + 1) % len(r.events)
	r.len--
	if e.prev != nil {
		r.replaced -= e.prev.size
	}
	e.shared.forget()
	return e.rv
}

func (r *ring) clear() {
	for r.len > 0 {
		r.evict()
	}
}
