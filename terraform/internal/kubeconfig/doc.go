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

// Package kubeconfig turns a provider's configuration into access to a cluster, the way the Kubernetes provider does:
// kubeconfig files, what overrides them, the environment, and the service account of the pod it runs in. Every error
// names the field that is at fault. It makes no request.
package kubeconfig
