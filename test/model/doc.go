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

// Package model runs the real server against random changes of its inputs and random clients, and holds what
// every client has seen against what the server says and against what the inputs say.
//
// A sequence is made from a seed. Its world is a bubble of testing/synctest: time is not real, and "nothing
// moves any more" is a condition that can be waited for. Everything between the sources of the inventory and the
// HTTP handler is what runs in a cluster; the sources, the authorizer and the connections are the world's, so
// that it can hold them up, cut them and break them.
//
// The seed decides what is done and in which order. How the goroutines of the server interleave meanwhile is up
// to the scheduler, so that a seed that failed may have to be run a few times to fail again.
package model
