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

// Package e2e holds what users see of the server against what is promised to them. The server runs behind a real
// APIService of a development stack and is asked with kubectl, client-go and plain HTTP. It is built with the race
// detector, and a race, a panic or a refusal that its log tells of fails the run.
//
// Two stacks are shared by all tests, each started when the first test asks for it: on the one the real CDI works on the
// samples, on the other nothing acts on objects and the tests write what a controller would. A test leaves a stack as it
// found it, so that tests run in any order and alone.
package e2e
