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

package cases

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
)

// Inputs are the objects applied so far. Whoever reads them may be behind, for each kind by itself, so
// that an object counts in every state that it was in since the last call of Settle.
type Inputs struct {
	states map[Key][]state
	count  int
	uids   sets.Set[types.UID]
	// applied holds every object as it was when it was applied.
	applied map[*unstructured.Unstructured]string
}

// Key names an object.
type Key struct {
	Kind      string
	Namespace string
	Name      string
}

// state that an object came into; nil when it went away.
type state struct {
	object *unstructured.Unstructured
	// number of the change.
	number int
}

// NewInputs returns inputs to which nothing was applied.
func NewInputs() *Inputs {
	return &Inputs{
		states:  map[Key][]state{},
		uids:    sets.New[types.UID](),
		applied: map[*unstructured.Unstructured]string{},
	}
}

// KeyOf returns the key of an object.
func KeyOf(object *unstructured.Unstructured) Key {
	return Key{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Apply makes the event's object the newest state of its key. Nobody may modify it from then on.
func (in *Inputs) Apply(event Event) {
	key := KeyOf(event.Object)
	in.uids.Insert(event.Object.GetUID())
	in.applied[event.Object] = fingerprint(event.Object)
	in.count++
	next := state{object: event.Object, number: in.count}
	if event.Type == watch.Deleted {
		next.object = nil
	}
	if len(in.states[key]) == 0 {
		in.states[key] = []state{{}}
	}
	in.states[key] = append(in.states[key], next)
}

// Count returns how many changes were applied.
func (in *Inputs) Count() int { return in.count }

// Settle declares that every reader has seen the first count changes.
func (in *Inputs) Settle(count int) {
	for key, states := range in.states {
		for len(states) > 1 && states[1].number <= count {
			states = states[1:]
		}
		in.states[key] = states
	}
}

// States returns the states that the object may be read in, oldest first. A state in which there is no
// such object is nil.
func (in *Inputs) States(key Key) []*unstructured.Unstructured {
	states := in.states[key]
	if len(states) == 0 {
		return []*unstructured.Unstructured{nil}
	}
	out := make([]*unstructured.Unstructured, 0, len(states))
	for _, s := range states {
		out = append(out, s.object)
	}
	return out
}

// Objects returns the newest state of every object of a kind that is there, by namespace and name.
func (in *Inputs) Objects(kind string) []*unstructured.Unstructured {
	keys := slices.SortedFunc(maps.Keys(in.states), compareKeys)
	var out []*unstructured.Unstructured
	for _, key := range keys {
		states := in.states[key]
		if newest := states[len(states)-1].object; key.Kind == kind && newest != nil {
			out = append(out, newest)
		}
	}
	return out
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// HasUID is true if any object that was applied has that uid.
func (in *Inputs) HasUID(uid types.UID) bool { return in.uids.Has(uid) }

// modified returns the objects that are not as they were when they were applied.
func (in *Inputs) modified() []string {
	var out []string
	for object, before := range in.applied {
		if fingerprint(object) != before {
			out = append(out, fmt.Sprintf("%s %s/%s at resourceVersion %s",
				object.GetKind(), object.GetNamespace(), object.GetName(), object.GetResourceVersion()))
		}
	}
	slices.Sort(out)
	return out
}

func fingerprint(object *unstructured.Unstructured) string {
	out, err := json.Marshal(object.Object)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
