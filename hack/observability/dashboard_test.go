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
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// classic is the form in which Grafana's sidecar takes dashboards from ConfigMaps.
type classic = dashboard.Dashboard //nolint:staticcheck // the sidecar does not take the form that replaces it

// load reads the dashboard as Grafana's schema has it. A field that the schema does not know, or lacks, is an error.
func load(t *testing.T) classic {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	content := read(t, dashboardFile)
	// Without faults it returns an error that names none, and leaves out what it has read.
	var faults cog.BuildErrors
	if err := new(classic).UnmarshalJSONStrict(content); err != nil && (!errors.As(err, &faults) || len(faults) > 0) {
		t.Fatal(err)
	}
	var out classic
	if err := json.Unmarshal(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// panels are those of the dashboard, without the rows between them.
func panels(t *testing.T) []dashboard.Panel {
	t.Helper()
	var out []dashboard.Panel
	for _, item := range load(t).Panels {
		if item.Panel != nil {
			out = append(out, *item.Panel)
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no panels")
	}
	return out
}

func TestTheDashboardIsValid(t *testing.T) {
	if err := load(t).Validate(); err != nil {
		t.Error(err)
	}
}

func TestNoPanelLiesOnAnother(t *testing.T) {
	taken := map[[2]uint32]string{}
	ids := map[uint32]bool{}
	for _, panel := range panels(t) {
		if ids[*panel.Id] {
			t.Errorf("%s has the id of another", *panel.Title)
		}
		ids[*panel.Id] = true
		at := *panel.GridPos
		if at.X+at.W > 24 {
			t.Errorf("%s is wider than the screen", *panel.Title)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if under := taken[[2]uint32{x, y}]; under != "" {
					t.Fatalf("%s lies on %s", *panel.Title, under)
				}
				taken[[2]uint32{x, y}] = *panel.Title
			}
		}
	}
}

func TestEveryPanelSaysWhatItShowsAndAsksTheChosenSource(t *testing.T) {
	for _, panel := range panels(t) {
		if panel.Description == nil || !strings.HasSuffix(*panel.Description, ".") {
			t.Errorf("%s is not described", *panel.Title)
		}
		if panel.Datasource == nil || *panel.Datasource.Uid != "${datasource}" {
			t.Errorf("%s asks another source", *panel.Title)
		}
	}
}

func TestEveryMetricOfTheDashboardIsThere(t *testing.T) {
	known := metrics(t)
	for _, panel := range panels(t) {
		if len(panel.Targets) == 0 {
			t.Errorf("%s asks nothing", *panel.Title)
		}
		for _, target := range panel.Targets {
			query, ok := target.(*prometheus.Dataquery)
			if !ok {
				t.Fatalf("%s has a query of type %T", *panel.Title, target)
			}
			checkQuery(t, known, strings.ReplaceAll(query.Expr, "$__rate_interval", "5m"))
		}
	}
}
