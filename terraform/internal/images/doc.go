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

// Package images talks to the images.cozystack.io API: it reads, makes, labels and deletes images, and waits by watch
// until one is ready or gone. It bounds how long it puts up with a server that does not answer, and says in the words
// of a user what an error is. It knows nothing of Terraform; what an image means is the API's to say.
package images
