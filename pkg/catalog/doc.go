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

// Package catalog knows the operator's catalog, the YAML document that declares which images may exist, and
// the DataVolume that an entry of it becomes. What is wrong with one entry rejects that entry and no other.
//
// The package is pure: text and values in, values out. It does not know where the document is kept, which
// goldens exist, or who asks for one. The keys of the document and the shape of the DataVolume are those of
// the Cozystack package that renders goldens, so that either side can make a golden that the other accepts;
// what CDI's admission checks of its fields is checked here as well.
package catalog
