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

package projection

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// ImageAfter returns image as it follows published: conditions whose status stays keep the time that they have
// there. Who projected published need not have known each state that came before image.
func ImageAfter(published, image *images.WorkerImage) *images.WorkerImage {
	out := *image
	if sameObject(image, published) {
		out.Status.Conditions = keepTimes(image.Status.Conditions, published.Status.Conditions)
	}
	return &out
}

// EntryAfter is ImageAfter for catalog entries.
func EntryAfter(published, entry *images.CatalogEntry) *images.CatalogEntry {
	out := *entry
	if isKnown(published) || !isKnown(entry) {
		out.Status.Conditions = keepTimes(entry.Status.Conditions, published.Status.Conditions)
	}
	return &out
}

func keepTimes(conditions, before []metav1.Condition) []metav1.Condition {
	out := slices.Clone(conditions)
	for i := range out {
		if last := meta.FindStatusCondition(before, out[i].Type); last != nil && last.Status == out[i].Status {
			out[i].LastTransitionTime = last.LastTransitionTime
		}
	}
	return out
}
