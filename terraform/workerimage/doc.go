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

// Package workerimage gives a Terraform provider the worker images of a cluster: data sources that pick the right image,
// and a resource that makes one. A provider registers them in a few lines, and they take its prefix: in a provider whose
// type name is cozystack they are cozystack_worker_image, cozystack_worker_images and cozystack_worker_image_catalog.
//
// What moves by itself is under the attribute status, and nothing outside of it moves unless somebody changes it.
package workerimage
