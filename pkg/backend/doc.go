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

// Package backend carries out on the cluster what a user does to a WorkerImage: it makes the DataVolume of a
// catalog entry, keeps labels and annotations with it, and deletes it. It is the only package that writes.
// The user's own rights have been checked by then; the writes are made with the server's.
//
// A write is answered when what is published shows it.
package backend
