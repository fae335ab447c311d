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

// Package history has the replicas of the server serve one history, so that a resourceVersion from one is good
// at another.
//
// One replica, which a Lease names, orders the changes: it publishes what it finds in the cluster, under
// versions of its own. The others follow: they watch its resources as any client does, and publish what they
// receive under the versions that it has there. A follower finds out by itself what there is as well, and when
// it becomes the one that orders it publishes the difference, in an epoch of its own that continues what it
// holds. What the earlier one published and it never received is not in that history, and expires.
//
// The Lease is for agreement, not for safety. Where it names a replica that does not answer, the others stay with
// the one that they follow. A replica that cannot reach the one that orders goes on by itself: two that order at a time have epochs apart, and their clients list again when they change from one
// to the other, as they do where replicas know nothing of each other.
//
// The package knows logs and the rules by which one continues another. It knows nothing of what is in them.
package history
