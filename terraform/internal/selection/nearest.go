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

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// Nearest returns the names of up to n images that come closest to a name, the closest first.
func Nearest(name string, all []v1alpha1.WorkerImage, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var candidates []candidate
	for _, image := range all {
		candidates = append(candidates, candidate{image.Name, editDistance(name, image.Name)})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, candidate := range candidates[:min(n, len(candidates))] {
		names = append(names, candidate.name)
	}
	return names
}

// editDistance is the number of bytes to insert, delete or replace that lead from one text to the other.
func editDistance(a, b string) int {
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
