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

// Package cases holds what clusters really went through and what the API must answer on the way: recorded
// timelines of the objects that are joined, checkpoints in them, and rules that hold after every event.
// testdata/README.md describes the format.
//
// The package knows what is expected of an answer, and not where the answer comes from: the same cases are
// replayed into the join and against a real API server. A key or a rule that it does not know is an error,
// for an expectation that nothing checks could not fail.
package cases
