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

package server

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"
)

// update has the documentation written anew.
var update = flag.Bool("update", false, "write docs/metrics.md anew")

const metricsDocument = "../../../docs/metrics.md"

// allowedLabels are those that a metric of this server may have, with what their values look like. None of them
// can hold a name that a tenant has made up.
var allowedLabels = map[string]*regexp.Regexp{
	"answer":    word,
	"condition": word,
	"image":     regexp.MustCompile(`^talos-worker-[a-z]+-v1\.13\.6$`),
	"phase":     word,
	"reason":    word,
	"resource":  word,
	"result":    word,
	"source":    word,
	"state":     word,
	"status":    word,
	"verb":      word,
}

var word = regexp.MustCompile(`^[A-Za-z]+$`)

// ownMetrics returns what the server tells of itself, sorted by name.
func ownMetrics(t *testing.T, f *fixture) []*testutil.MetricFamily {
	t.Helper()
	res, body := f.request(t, "/metrics", nil)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", res.Status, body)
	}
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var own []*testutil.MetricFamily
	for name, family := range families {
		if strings.HasPrefix(name, "workerimage_") {
			own = append(own, family)
		}
	}
	slices.SortFunc(own, func(a, b *testutil.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return own
}

func labelsOf(family *testutil.MetricFamily) []string {
	var labels []string
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(labels, l.GetName()) {
				labels = append(labels, l.GetName())
			}
		}
	}
	slices.Sort(labels)
	return labels
}

func TestNoLabelHoldsWhatATenantWrites(t *testing.T) {
	f := startWithTenants(t)
	// A write of each kind, and a question of each kind.
	for _, verb := range []string{http.MethodGet, http.MethodDelete} {
		for _, name := range []string{usedByBoth, usedByB, missedByB} {
			send(t, f.as("tenant-a"), call{method: verb, path: resource + "/" + name})
		}
	}
	images, err := f.client.ImagesV1alpha1().WorkerImages().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, image := range images.Items {
		there = append(there, image.Name)
	}
	for _, family := range ownMetrics(t, f) {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				shape := allowedLabels[l.GetName()]
				switch {
				case shape == nil:
					t.Errorf("%s has label %s", family.GetName(), l.GetName())
				case !shape.MatchString(l.GetValue()):
					t.Errorf("%s has %s=%q", family.GetName(), l.GetName(), l.GetValue())
				case l.GetName() == "image" && !slices.Contains(there, l.GetValue()):
					t.Errorf("%s names %s, which is no image", family.GetName(), l.GetValue())
				}
			}
		}
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	var table strings.Builder
	table.WriteString("| metric | type | labels | what it tells |\n|---|---|---|---|\n")
	for _, family := range ownMetrics(t, startWithTenants(t)) {
		labels := ""
		if of := labelsOf(family); len(of) > 0 {
			labels = "`" + strings.Join(of, "`, `") + "`"
		}
		help := strings.TrimPrefix(family.GetHelp(), "[ALPHA] ")
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", family.GetName(), strings.ToLower(family.GetType().String()), labels, help)
	}

	document, err := os.ReadFile(metricsDocument)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin: metrics -->\n", "<!-- end: metrics -->\n"
	before, rest, found := strings.Cut(string(document), begin)
	documented, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", metricsDocument)
	}
	if *update {
		if err := os.WriteFile(metricsDocument, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), documented); diff != "" {
		t.Errorf("%s is not what is served; 'go test ./pkg/cmd/server -run %s -update' writes it (-served +documented):\n%s", metricsDocument, t.Name(), diff)
	}
}

func TestTheStateOfTheServerIsInItsMetrics(t *testing.T) {
	f := startWithTenants(t)
	send(t, f.as("tenant-a"), call{method: http.MethodGet, path: resource + "/" + usedByBoth})
	send(t, f.config, call{method: http.MethodDelete, path: resource + "/" + usedByBoth})
	_, body := f.request(t, "/metrics", nil)
	for _, want := range []string{
		`workerimage_source_readable{source="kubernetesnodes"} 1`,
		`workerimage_source_objects{source="kubernetesnodes"} 5`,
		`workerimage_pools{reason="GoldenMissing"} 2`,
		`workerimage_images{phase="Pending"} 3`,
		`workerimage_image_condition{condition="InUse",image="` + unused + `",reason="NotInUse",status="False"} 1`,
		`workerimage_refused_deletes_total{reason="InUse"} 1`,
		`workerimage_writes_total{result="Conflict",verb="delete"} 1`,
		`workerimage_log_objects{resource="workerimages"} 3`,
	} {
		if !strings.Contains(string(body), "\n"+want+"\n") {
			t.Errorf("it does not say %s", want)
		}
	}
	for _, name := range []string{
		"workerimage_projection_duration_seconds_count", `workerimage_view_questions_total{answer="allowed"}`,
		"workerimage_serving_certificate_not_after_timestamp_seconds",
	} {
		if found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` ([^0].*)$`).Find(body); found == nil {
			t.Errorf("%s is not there, or zero", name)
		}
	}
}
