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

// Package snapshot knows how to take manifests in files for a cluster: objects as kubectl prints them, of
// the kinds that an inventory reads, in any mix with others. It offers them as list-watches in memory, and
// passes on what changes in the files.
//
// It does not know what the objects mean, and takes them as they are: what an API server would refuse is
// as good here as what it would store.
package snapshot
