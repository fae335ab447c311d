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

package quantity

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// lengthLimit leaves room for every quantity that can be told from another.
	lengthLimit = 64
	// exponentLimit leaves room for every power of ten between the smallest and the largest quantity.
	exponentLimit = 18
)

// Parse returns the quantity that the text holds.
//
// resource.ParseQuantity computes the power of ten that an exponent asks for: some ten characters of input
// keep it busy for minutes.
func Parse(text string) (resource.Quantity, error) {
	if len(text) > lengthLimit {
		return resource.Quantity{}, fmt.Errorf("a quantity has at most %d characters", lengthLimit)
	}
	if exponent, found := exponentOf(text); found {
		power, err := strconv.Atoi(exponent)
		if err != nil || power > exponentLimit || power < -exponentLimit {
			return resource.Quantity{}, fmt.Errorf("the exponent of a quantity is a whole number from -%d to %d", exponentLimit, exponentLimit)
		}
	}
	return resource.ParseQuantity(text)
}

// exponentOf returns what follows the letter e. The suffixes E and Ei are not exponents.
func exponentOf(text string) (string, bool) {
	start := strings.IndexAny(text, "eE")
	if start < 0 {
		return "", false
	}
	exponent := text[start+1:]
	return exponent, exponent != "" && exponent != "i"
}
