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

// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/cozystack/workerimage-apiserver/pkg/apis/images
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.cozystack.images.v1alpha1
// +groupName=images.cozystack.io

// Package v1alpha1 is the served version of the images.cozystack.io API: the golden Talos OS images
// that worker VMs are cloned from, the catalog they come from, and the choices a form offers.
// Everything but the metadata a user sets is computed from the cluster and never stored.
package v1alpha1
