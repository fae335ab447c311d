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

package selection

import (
	"fmt"
	"strings"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// shownImages is how many images an error lists.
const shownImages = 10

// NoMatchError means that a query means no image.
type NoMatchError struct {
	Query Query
	// NotReady matches all but for not being ready.
	NotReady []v1alpha1.WorkerImage
	// All is every image there is.
	All []v1alpha1.WorkerImage
}

func (e *NoMatchError) Error() string {
	text := fmt.Sprintf("No worker image %s.", e.Query)
	switch {
	case len(e.NotReady) > 0:
		return text + " These would match, and are not ready:\n" + list(e.NotReady)
	case len(e.All) > 0:
		return text + " These exist:\n" + list(e.All)
	}
	return text + " There are no worker images at all."
}

// AmbiguousError means that a query means several images.
type AmbiguousError struct {
	Query      Query
	Candidates []v1alpha1.WorkerImage
}

func (e *AmbiguousError) Error() string {
	advice := "Narrow the filter, or set most_recent = true to take the newest version."
	if e.Query.MostRecent {
		advice = "They have the same version: narrow the filter by schematic_id or storage_class."
	}
	return fmt.Sprintf("%d worker images match where one is asked for:\n%s\n\n%s", len(e.Candidates), list(e.Candidates), advice)
}

// String completes "worker image ...".
func (q Query) String() string {
	var parts []string
	for _, condition := range []struct{ word, value string }{
		{"schematic_id", q.SchematicID},
		{"version", q.Version},
		{"version_constraint", q.Constraints.String()},
		{"storage_class", q.StorageClass},
	} {
		if condition.value != "" {
			parts = append(parts, fmt.Sprintf("%s = %q", condition.word, condition.value))
		}
	}
	if q.ReadyOnly {
		parts = append(parts, "ready_only = true")
	}
	if len(parts) == 0 {
		return "exists"
	}
	return "matches " + strings.Join(parts, ", ")
}

// list writes a line for each image, up to a number that can be read.
func list(images []v1alpha1.WorkerImage) string {
	var lines []string
	for _, image := range images[:min(len(images), shownImages)] {
		class := effectiveClass(image)
		if class == "" {
			class = "class unknown"
		}
		lines = append(lines, fmt.Sprintf("  - %s (%s, %s)", image.Name, image.Status.Phase, class))
	}
	if more := len(images) - shownImages; more > 0 {
		lines = append(lines, fmt.Sprintf("  - and %d more", more))
	}
	return strings.Join(lines, "\n")
}
