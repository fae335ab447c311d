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

// Package inventory knows what the cluster holds right now of everything that is joined into a
// WorkerImage: it watches each kind once, keeps of every object the few values that the rules read,
// indexes them by the name of the image they matter to, projects the images that a change concerns, and
// publishes what came out. It also knows of each kind whether it can be read at all.
//
// The work is proportional to the change. The worker disks of a pool are counters that an event moves up
// or down; nothing ever walks all disks, and no object is kept as it arrived.
//
// The package does not know whether its sources are a cluster or manifests in files, what the rules are
// (golden, storageclass, pool and projection do), or who reads what it publishes.
package inventory
