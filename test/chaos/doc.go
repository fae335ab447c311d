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

// Package chaos breaks what the server stands on, on a real control plane, and holds what users see meanwhile and
// afterwards against what is promised: Unknown for what cannot be known, no deletion while users cannot be counted, other
// kinds unaffected, and in the end the state that a server has which never saw the failure. Times are reported, and
// bounded only by what would be a hang.
//
// Three stacks are shared: one with a single server, and two with three replicas behind a balancer, each of which has a
// history of its own, or which serve one. Nothing acts on objects there but the tests. A test leaves a stack as it found
// it.
package chaos
