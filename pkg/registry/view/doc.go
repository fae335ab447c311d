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

// Package view shows each caller the pools that it may see, and nothing of the others.
//
// An object that is served names pools of many namespaces, and everybody may read the object. A pool is shown
// to a caller who may get the kind of pools in the pool's namespace, which is for the cluster's API server to
// say; whoever may do so in all namespaces is served the shared object as it is. A catalog entry is what it
// would be if no other pools asked for it, which may be nothing. Nothing else of an object differs from caller
// to caller.
//
// A Store wraps the one of k8s.io/apiserver and does not embed it, so that no verb is served unfiltered. What
// a patch is applied to is filtered too, or its tests would read what is hidden. Tables and partial metadata
// are made from what a Store returns.
//
// The package knows where a kind keeps its pools. It knows nothing of what a pool is, of how an object is made,
// for which it asks the projection, or of roles.
package view
