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

package catalog

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

// comparedLimit bounds the texts whose distance is computed, for that takes the product of their lengths.
const comparedLimit = 128

// Nearest returns the pairs of up to n entries that come closest to what was asked for, the closest first:
// those of the same schematic, then those of the same version, then the others.
func (c *Catalog) Nearest(id golden.ID, n int) []golden.ID {
	type candidate struct {
		id       golden.ID
		distance distance
	}
	candidates := make([]candidate, 0, len(c.Entries))
	for _, entry := range c.Entries {
		candidates = append(candidates, candidate{entry.ID, distanceBetween(id, entry.ID)})
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return a.distance.compare(b.distance) })

	var nearest []golden.ID
	for _, candidate := range candidates[:min(max(n, 0), len(candidates))] {
		nearest = append(nearest, candidate.id)
	}
	return nearest
}

// distance says how far two pairs are apart.
type distance struct {
	group     int
	schematic int
	version   [4]uint
}

const (
	sameSchematic = iota
	sameVersion
	different
)

func distanceBetween(a, b golden.ID) distance {
	switch {
	case a.SchematicID == b.SchematicID:
		return distance{group: sameSchematic, version: versionDistance(a.Version, b.Version)}
	case a.Version == b.Version:
		return distance{group: sameVersion, schematic: editDistance(a.SchematicID, b.SchematicID)}
	}
	return distance{
		group:     different,
		schematic: editDistance(a.SchematicID, b.SchematicID),
		version:   versionDistance(a.Version, b.Version),
	}
}

func (d distance) compare(other distance) int {
	return cmp.Or(
		cmp.Compare(d.group, other.group),
		cmp.Compare(d.schematic, other.schematic),
		slices.Compare(d.version[:], other.version[:]),
	)
}

// versionDistance counts majors before minors, minors before patches, and the suffix last. What is not a
// semantic version is as far away as can be.
func versionDistance(a, b string) [4]uint {
	left, err := version.ParseSemantic(a)
	if err != nil {
		return farthest()
	}
	right, err := version.ParseSemantic(b)
	if err != nil {
		return farthest()
	}
	return [4]uint{
		difference(left.Major(), right.Major()),
		difference(left.Minor(), right.Minor()),
		difference(left.Patch(), right.Patch()),
		uint(editDistance(left.PreRelease(), right.PreRelease())),
	}
}

func farthest() [4]uint {
	return [4]uint{math.MaxUint, math.MaxUint, math.MaxUint, math.MaxUint}
}

func difference(a, b uint) uint {
	return max(a, b) - min(a, b)
}

// editDistance is the number of bytes to insert, delete or replace that lead from one text to the other.
func editDistance(a, b string) int {
	a, b = freeform.Clip(a, comparedLimit), freeform.Clip(b, comparedLimit)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
