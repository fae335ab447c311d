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

// Package metrics says how the server and the images are doing, in the form that Prometheus reads.
//
// What is a state is read when it is asked for, from where it is kept, so that it cannot be outdated. What is
// counted is counted here. Of each image that is published a few figures are kept, so that the cost of being
// read grows with the images and not with their pools or disks.
//
// No label has a value that a tenant has written. Each comes from an enumeration, which folds what it does not
// know into one value, or is the name of an image that exists, and an image is made by an operator. Names of
// namespaces, of pools and of images that are only asked for are in no label.
package metrics
