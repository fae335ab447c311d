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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string // empty: refused
	}{
		"a binary suffix":                        {"6Gi", "6Gi"},
		"a decimal suffix":                       {"6G", "6G"},
		"plain bytes":                            {"6442450944", "6442450944"},
		"the suffix exa":                         {"1E", "1E"},
		"the suffix exbi":                        {"1Ei", "1Ei"},
		"a small exponent":                       {"6e9", "6e9"},
		"a negative exponent":                    {"6e-3", "6m"},
		"the largest exponent":                   {"1e18", "1e18"},
		"an exponent out of range":               {"1e19", ""},
		"a negative exponent out of range":       {"1e-19", ""},
		"an exponent that would take minutes":    {"1e999999999", ""},
		"a negative one that would take minutes": {"1E-999999999", ""},
		"an exponent that is no number":          {"1e9.5", ""},
		"more digits than anybody needs":         {strings.Repeat("9", 65), ""},
		"a word":                                 {"large", ""},
		"nothing":                                {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.text)
			if (err != nil) != (test.want == "") {
				t.Fatalf("Parse(%q): error %v", test.text, err)
			}
			if err == nil && got.Cmp(resource.MustParse(test.want)) != 0 {
				t.Errorf("Parse(%q) = %v, want %s", test.text, got.String(), test.want)
			}
		})
	}
}
