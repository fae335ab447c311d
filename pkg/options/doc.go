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

// Package options gives a server that fills the dropdowns of forms the choices among the worker images, in the
// order and under the labels that the images API gives them. It is made to be imported by others: a dynamic
// client goes in, items come out.
//
// It has no rules of its own. Which images may be chosen, and which is the default, is for the server of the
// images API alone to say, so that a form shows the same wherever its choices come from, whatever the release
// of who imports this package. It imports none of this module's packages and nothing of k8s.io/apiserver.
package options
