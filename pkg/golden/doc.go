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

// Package golden knows the naming contract of goldens, what CDI and Kubernetes say about one, and what
// that means: which claim is its own, where it stands and why it is not ready. A golden is a CDI
// DataVolume in the goldens' namespace whose name is talos-worker-<schematicID>-<version>.
//
// The package is pure: values in, values out. It does not know where its inputs come from, which pools
// use a golden, or what a catalog is. Its rules are those of the Cozystack node charts and of CDI.
package golden
