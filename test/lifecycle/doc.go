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

// Package lifecycle holds what becomes of an installation against what docs/operations.md says: it is installed, moved to
// another version and back, drained, given other certificates and removed, by helm and kubectl, while clients go on. On
// its stack the real Deployment controller makes the pods, and the simulated node runs them as processes with the probes,
// rights and delays that the chart has; kube-apiserver reaches them through their Service.
//
// The environment variable HELM names helm. With -from, the version that an upgrade begins with is built from another
// tree of the repository, and installed by the chart that is there.
package lifecycle
