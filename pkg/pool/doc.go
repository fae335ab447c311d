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

// Package pool knows which image a node pool consumes, which disks belong to it, and whether its next
// worker can be cloned on the storage layer. A pool is a KubernetesNodes object; its spec is free-form,
// so any field may be missing, null or of another type.
//
// The package is pure. Its rules are those of the pool chart of Cozystack.
package pool
