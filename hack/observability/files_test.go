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

package observability

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	alertsFile    = "../../artifacts/chart/files/alerts.yaml"
	dashboardFile = "../../artifacts/chart/files/dashboard.json"
	metricsFile   = "../../docs/metrics.md"
	runbooks      = "../../docs/runbooks"
	runbookURL    = "https://github.com/cozystack/workerimage-apiserver/blob/main/docs/runbooks/"
)

// upstream are the metrics of Kubernetes and of every Go program that are relied on, with their labels.
var upstream = map[string][]string{
	"aggregator_unavailable_apiservice":       {"name"},
	"aggregator_unavailable_apiservice_total": {"name", "reason"},
	"apiserver_request_total":                 {"group", "verb", "code"},
	"apiserver_request_duration_seconds":      {"group", "verb"},
	"process_cpu_seconds_total":               nil,
	"process_resident_memory_bytes":           nil,
}

// read returns the content of a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// alerts returns the rules by name, in groups or not.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(read(t, alertsFile), false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	out := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || out[rule.Alert].Alert != "" {
				t.Errorf("group %s: %q is no alert, or there twice", group.Name, rule.Alert)
			}
			out[rule.Alert] = rule
		}
	}
	return out
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// metrics returns the labels of the metrics that can be asked for, by name.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	out := maps.Clone(upstream)
	line := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([^|]*) \\|")
	for _, found := range line.FindAllStringSubmatch(string(read(t, metricsFile)), -1) {
		var labels []string
		for label := range strings.SplitSeq(found[2], ",") {
			labels = append(labels, strings.Trim(label, " `"))
		}
		out[found[1]] = labels
	}
	if len(out) == len(upstream) {
		t.Fatalf("%s lists no metric", metricsFile)
	}
	return out
}

// checkQuery reports what a query asks for and is not there.
func checkQuery(t *testing.T, known map[string][]string, query string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		labels, ok := known[selector.Name]
		if !ok {
			name, isBucket := strings.CutSuffix(selector.Name, "_bucket")
			if labels, ok = known[name]; !ok || !isBucket {
				t.Errorf("%s: there is no metric %s", query, selector.Name)
				return nil
			}
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && !slices.Contains(labels, matcher.Name) {
				t.Errorf("%s: %s has no label %s", query, selector.Name, matcher.Name)
			}
		}
		return nil
	})
}

func runbookFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), ".md")
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "README" })
}
