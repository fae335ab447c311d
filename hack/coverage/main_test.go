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

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const profile = `mode: atomic
example.org/m/pkg/pool/verdict.go:10.2,12.3 6 0
example.org/m/pkg/pool/verdict.go:14.2,20.3 94 7
example.org/m/pkg/pool/zz_generated.deepcopy.go:1.2,9.3 100 0
example.org/m/pkg/generated/clientset/clientset.go:1.2,9.3 100 0
example.org/m/pkg/backend/backend.go:1.2,9.3 3 0
example.org/m/pkg/backend/backend.go:11.2,19.3 1 1
`

func TestReadCountsStatementsThatSomebodyWrote(t *testing.T) {
	for name, test := range map[string]struct {
		profile string
		want    map[string]count
	}{
		"generated code does not count": {
			profile: profile,
			want: map[string]count{
				pool:    {covered: 94, all: 100},
				backend: {covered: 1, all: 4},
			},
		},
		"a block that the tests of two packages meet counts once": {
			profile: "a/a.go:1.1,2.2 5 0\na/a.go:1.1,2.2 5 3\na/a.go:1.1,2.2 5 0\n",
			want:    map[string]count{"a": {covered: 5, all: 5}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(strings.NewReader(test.profile))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(count{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadRefusesWhatIsNoProfile(t *testing.T) {
	if _, err := read(strings.NewReader("ok  \texample.org/m/pkg/pool\t0.1s\n")); err == nil {
		t.Error("the output of go test was taken for a profile")
	}
}

const pool, backend = "example.org/m/pkg/pool", "example.org/m/pkg/backend"

func TestReportFailsBelowTheMark(t *testing.T) {
	for name, test := range map[string]struct {
		mark   float64
		marked []string
		err    string
	}{
		"a package below its mark is named": {
			mark: 95, marked: []string{pool},
			err: "less than 95% of the statements are covered in example.org/m/pkg/pool (94.0%)",
		},
		"a package at its mark passes":              {mark: 94, marked: []string{pool}},
		"a package without a mark is only reported": {mark: 95},
		"a package that was not tested at all is named": {
			mark: 95, marked: []string{"example.org/m/pkg/gone"},
			err: "the profile has nothing of example.org/m/pkg/gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			packages, err := read(strings.NewReader(profile))
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := report(io.Discard, packages, test.mark, test.marked); err != nil {
				got = err.Error()
			}
			if got != test.err {
				t.Errorf("got the error %q, want %q", got, test.err)
			}
		})
	}
}

func TestReportHasThePackagesWithAMarkFirst(t *testing.T) {
	packages, err := read(strings.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report(&out, packages, 90, []string{pool}); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"  statements  covered  mark  package\n" +
		"         100    94.0%   90%  " + pool + "\n" +
		"           4    25.0%        " + backend + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
