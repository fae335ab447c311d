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

import "k8s.io/apimachinery/pkg/util/sets"

// table holds the values of one kind. The zero value of V stands for an object that is not there.
type table[V comparable] struct {
	values map[key]V
	equal  func(a, b V) bool
	// moved is told of every value that changed, after it did.
	moved func(k key, from, to V)
}

func newTable[V comparable](equal func(a, b V) bool, moved func(k key, from, to V)) table[V] {
	return table[V]{values: map[key]V{}, equal: equal, moved: moved}
}

// set makes to the value of k. An equal value changes nothing.
func (t *table[V]) set(k key, to V) {
	from := t.values[k]
	if t.equal(from, to) {
		return
	}
	var none V
	if to == none {
		delete(t.values, k)
	} else {
		t.values[k] = to
	}
	t.moved(k, from, to)
}

// replace makes values the whole content.
func (t *table[V]) replace(values map[key]V) {
	var none V
	for k := range t.values {
		if _, ok := values[k]; !ok {
			t.set(k, none)
		}
	}
	for k, v := range values {
		t.set(k, v)
	}
}

// multimap lists several values under one key.
type multimap[K, V comparable] map[K]sets.Set[V]

func (m multimap[K, V]) add(k K, v V) {
	if m[k] == nil {
		m[k] = sets.New[V]()
	}
	m[k].Insert(v)
}

func (m multimap[K, V]) remove(k K, v V) {
	if m[k].Delete(v); len(m[k]) == 0 {
		delete(m, k)
	}
}
