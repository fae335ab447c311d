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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// store feeds the objects that a reflector finds into a table, as values: what the reflector holds is
// garbage when a method returns.
//
// It takes objects of type O only, and returns no errors: a reflector would log them together with the
// object, whose annotations may hold tokens.
type store[O metav1.Object, V comparable] struct {
	inventory *Inventory
	source    *source
	table     *table[V]
	slim      func(O) V
}

var (
	_ cache.TransformingStore      = &store[metav1.Object, bool]{}
	_ cache.ResourceVersionUpdater = &store[metav1.Object, bool]{}
)

// item is an object that was slimmed before it reached the store.
type item[V comparable] struct {
	key   key
	value V
}

// Transformer slims objects while they are streamed.
func (s *store[O, V]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.item(object), nil }
}

func (s *store[O, V]) item(object any) *item[V] {
	if slim, ok := object.(*item[V]); ok {
		return slim
	}
	o := object.(O)
	return &item[V]{key: keyOf(o), value: s.slim(o)}
}

// Add puts in an object.
func (s *store[O, V]) Add(object any) error {
	it := s.item(object)
	s.change(func() { s.table.set(it.key, it.value) })
	return nil
}

// Update puts in the new state of an object.
func (s *store[O, V]) Update(object any) error { return s.Add(object) }

// Delete takes an object out.
func (s *store[O, V]) Delete(object any) error {
	var none V
	s.change(func() { s.table.set(keyOf(object.(O)), none) })
	return nil
}

// Replace makes a list the whole content.
func (s *store[O, V]) Replace(list []any, resourceVersion string) error {
	values := make(map[key]V, len(list))
	var none V
	for n, object := range list {
		it := s.item(object)
		list[n] = nil // the list is ours, and full objects are large
		if it.value != none {
			values[it.key] = it.value
		}
	}
	s.change(func() {
		s.table.replace(values)
		s.source.synced = true
		s.source.version = resourceVersion
		s.inventory.progressed()
		s.source.succeeded(s.inventory.clock.Now())
	})
	return nil
}

// UpdateResourceVersion is told how far the reflector has come.
func (s *store[O, V]) UpdateResourceVersion(resourceVersion string) {
	s.inventory.mu.Lock()
	defer s.inventory.mu.Unlock()
	s.source.version = resourceVersion
	s.inventory.progressed()
}

// Resync has nothing to do.
func (s *store[O, V]) Resync() error { return nil }

// change runs f under the lock and lets the projection know.
func (s *store[O, V]) change(f func()) {
	s.inventory.mu.Lock()
	defer s.inventory.mu.Unlock()
	f()
	s.source.lastEvent = s.inventory.clock.Now()
	s.inventory.notify()
}
