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
	"cmp"
	"slices"

	"github.com/hashicorp/go-version"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/images"
)

// Query says which images are meant. What is empty selects nothing out.
type Query struct {
	SchematicID string
	Version     string
	// Constraints on the version leave pre-releases out, unless they name one.
	Constraints  version.Constraints
	StorageClass string
	ReadyOnly    bool
	// MostRecent takes the newest version where several images match.
	MostRecent bool
}

// Images returns the images that match, the newest version first, and those of one version by name.
func (q Query) Images(all []v1alpha1.WorkerImage) []v1alpha1.WorkerImage {
	var matching []v1alpha1.WorkerImage
	for _, image := range all {
		if q.matches(image) {
			matching = append(matching, image)
		}
	}
	slices.SortStableFunc(matching, func(a, b v1alpha1.WorkerImage) int {
		return compare(a.Spec.Version, a.Name, b.Spec.Version, b.Name)
	})
	return matching
}

// One returns the one image that a query means, or an error that lists what it could mean.
func (q Query) One(all []v1alpha1.WorkerImage) (*v1alpha1.WorkerImage, error) {
	matching := q.Images(all)
	switch {
	case len(matching) == 0:
		relaxed := q
		relaxed.ReadyOnly = false
		return nil, &NoMatchError{Query: q, NotReady: relaxed.Images(all), All: Query{}.Images(all)}
	case len(matching) == 1:
		return &matching[0], nil
	case q.MostRecent && !sameVersion(matching[0], matching[1]):
		return &matching[0], nil
	}
	if q.MostRecent {
		newest := matching[0]
		matching = slices.DeleteFunc(matching, func(image v1alpha1.WorkerImage) bool { return !sameVersion(newest, image) })
	}
	return nil, &AmbiguousError{Query: q, Candidates: matching}
}

func (q Query) matches(image v1alpha1.WorkerImage) bool {
	switch {
	case q.SchematicID != "" && q.SchematicID != image.Spec.SchematicID,
		q.Version != "" && q.Version != image.Spec.Version,
		!satisfies(image.Spec.Version, q.Constraints),
		q.StorageClass != "" && q.StorageClass != effectiveClass(image),
		q.ReadyOnly && !images.Ready(&image):
		return false
	}
	return true
}

func effectiveClass(image v1alpha1.WorkerImage) string {
	if image.Status.StorageClass == nil {
		return ""
	}
	return image.Status.StorageClass.Effective
}

// Entries returns the catalog entries of a schematic, empty for all, whose version satisfies the constraints, the newest
// version first, and those of one version by name.
func Entries(all []v1alpha1.CatalogEntry, schematicID string, constraints version.Constraints) []v1alpha1.CatalogEntry {
	var matching []v1alpha1.CatalogEntry
	for _, entry := range all {
		if (schematicID == "" || schematicID == entry.Spec.SchematicID) && satisfies(entry.Spec.Version, constraints) {
			matching = append(matching, entry)
		}
	}
	slices.SortStableFunc(matching, func(a, b v1alpha1.CatalogEntry) int {
		return compare(a.Spec.Version, a.Name, b.Spec.Version, b.Name)
	})
	return matching
}

// satisfies holds for everything where there are no constraints, also for what is no semantic version.
func satisfies(text string, constraints version.Constraints) bool {
	if len(constraints) == 0 {
		return true
	}
	parsed, err := version.NewSemver(text)
	return err == nil && constraints.Check(parsed)
}

func sameVersion(a, b v1alpha1.WorkerImage) bool {
	return compareVersions(a.Spec.Version, b.Spec.Version) == 0
}

// compare orders by version, the newest first, and then by name.
func compare(aVersion, aName, bVersion, bName string) int {
	return cmp.Or(compareVersions(bVersion, aVersion), cmp.Compare(aName, bName))
}

// compareVersions takes what is no semantic version for older than everything that is one.
func compareVersions(a, b string) int {
	left, leftErr := version.NewSemver(a)
	right, rightErr := version.NewSemver(b)
	switch {
	case leftErr != nil && rightErr != nil:
		return cmp.Compare(a, b)
	case leftErr != nil:
		return -1
	case rightErr != nil:
		return 1
	}
	return left.Compare(right)
}
