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

// Package imagereport tells operators when something stands in the way of an image: in the log, and in Events on its
// golden, where they look who look at the DataVolume. It knows what is published of an image, which everybody may read, and
// nothing of who asks for it, so that no name of a tenant is in anything it says.
//
// All replicas see the same and have the same name for it, so that one of them records the Event and the others find it
// there. It is recorded once for each reason in the life of a golden, as long as the cluster keeps Events.
package imagereport
