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

// Package memory is a storage.Interface over a versioned log in memory, one log per resource.
//
// A Log holds the current objects, a ring of recent events and one resourceVersion that moves
// with every event. Whoever computes the objects is its only writer (Apply and Remove); a request
// that changes something is handed to a Backend, and the Storage answers it once the log shows
// the outcome. The ring serves watchers, each of which reads it with a cursor of its own, and it
// is an undo log: the state at an older version is the present one with newer events reverted.
//
// Objects in a log are immutable and shared by all readers. A list holds copies of the outermost
// structs, whose maps, slices and pointers are still the shared ones and are read only. Watchers are
// sent a runtime.CacheableObject, which is encoded once for all of them. What Get and the writes
// return is the caller's own, since the registry works on it.
//
// Keys are those of the generic registry: the resource's prefix, a slash and the object's name, with
// the namespace and a slash in between if it has one.
//
// The package knows the rules that clients of a Kubernetes API rely on when they list and watch,
// as k8s.io/apiserver/pkg/storage lays them down and tests them. It knows nothing of the objects
// it serves, of where they come from, or of who asks for them.
package memory
