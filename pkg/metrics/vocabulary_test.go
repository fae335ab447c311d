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

package metrics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// constants returns the values of the string constants of a package whose names begin with prefix.
func constants(t *testing.T, folder, prefix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Fatalf("%s has no constant %s...", folder, prefix)
	}
	return values
}

func TestEveryReasonAndPhaseIsKnown(t *testing.T) {
	// These are of catalog entries, and of disks that belong to no pool.
	elsewhere := []string{projection.ReasonDeclared, projection.ReasonCreated, projection.ReasonNotCreated, projection.ReasonNotSelected}
	for _, test := range []struct {
		folder, prefix string
		known          vocabulary
	}{
		{"../golden", "Reason", conditionReasons},
		{"../pool", "Reason", verdicts},
		{"../projection", "Reason", conditionReasons},
		{"../apis/images", "WorkerImage", phases},
	} {
		for _, value := range constants(t, test.folder, test.prefix) {
			if !slices.Contains(test.known, value) && !slices.Contains(elsewhere, value) {
				t.Errorf("%s: %s is folded into %s", test.folder, value, other)
			}
		}
	}
}

func TestWhatIsNotKnownIsFolded(t *testing.T) {
	for value, want := range map[string]string{"Ready": "Ready", "ready": other, "": other, "tenant-a": other} {
		if got := phases.fold(value); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}

func TestAllDoesNotChangeAVocabulary(t *testing.T) {
	v := append(make(vocabulary, 0, 8), "a")
	if got := v.all(); !slices.Equal(got, []string{"a", other}) {
		t.Errorf("got %v", got)
	}
	if spare := v[:2][1]; spare != "" {
		t.Errorf("it wrote %q behind the vocabulary", spare)
	}
}

// Alerts and dashboard ask for values of labels by name.
func TestAlertsAndDashboardAskForValuesThatAreThere(t *testing.T) {
	known := map[string]vocabulary{
		"answer":    answers,
		"condition": conditionTypes,
		"phase":     phases,
		"reason":    append(slices.Clone(conditionReasons), verdicts...),
		"status":    conditionStatuses,
		"state":     {"accepted", "rejected"},
	}
	matcher := regexp.MustCompile(`(answer|condition|phase|reason|status|state) *(?:=~|!=|=)\\?"([^"\\]+)\\?"`)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join("../../artifacts/chart/files", file))
		if err != nil {
			t.Fatal(err)
		}
		found := matcher.FindAllStringSubmatch(string(content), -1)
		if len(found) == 0 {
			t.Errorf("%s asks for no value", file)
		}
		for _, match := range found {
			for value := range strings.SplitSeq(match[2], "|") {
				if !slices.Contains(known[match[1]], value) {
					t.Errorf("%s asks for %s %q", file, match[1], value)
				}
			}
		}
	}
}
