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
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestEveryAlertSaysHowSevereItIsAndWhatToDo(t *testing.T) {
	for name, rule := range alerts(t) {
		if severity := rule.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s has severity %q", name, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if !strings.HasSuffix(rule.Annotations[annotation], ".") {
				t.Errorf("%s: the %s is no sentence: %q", name, annotation, rule.Annotations[annotation])
			}
		}
		if got, want := rule.Annotations["runbook_url"], runbookURL+name+".md"; got != want {
			t.Errorf("%s has its runbook at %s, want %s", name, got, want)
		}
	}
}

func TestEveryAlertHasARunbookAndEveryRunbookAnAlert(t *testing.T) {
	if have, want := runbookFiles(t), names(alerts(t)); !slices.Equal(have, want) {
		t.Errorf("there are runbooks\n%v\nand alerts\n%v", have, want)
	}
}

func TestEveryRunbookAnswersTheSameQuestions(t *testing.T) {
	for _, name := range runbookFiles(t) {
		text := string(read(t, filepath.Join(runbooks, name+".md")))
		if !strings.HasPrefix(text, "# "+name+"\n") {
			t.Errorf("%s begins otherwise", name)
		}
		at := 0
		for _, section := range []string{"\n## Impact\n", "\n## Look\n", "\n## Do\n"} {
			next := strings.Index(text, section)
			if next < at {
				t.Errorf("%s lacks %q, or has it elsewhere", name, strings.TrimSpace(section))
			}
			at = next
		}
	}
}

func TestEveryMetricOfAnAlertIsThere(t *testing.T) {
	known := metrics(t)
	for _, rule := range alerts(t) {
		checkQuery(t, known, rule.Expr)
	}
}

// ruleTests are the tests that promtool runs.
type ruleTests struct {
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string     `json:"alertname"`
			ExpAlerts []struct{} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func TestEveryAlertIsTestedToFireAndToBeQuiet(t *testing.T) {
	files, err := filepath.Glob("*.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		var all ruleTests
		if err := yaml.Unmarshal(read(t, file), &all); err != nil {
			t.Fatal(err)
		}
		for _, test := range all.Tests {
			for _, check := range test.AlertRuleTest {
				if len(check.ExpAlerts) > 0 {
					fires[check.Alertname] = true
				} else {
					quiet[check.Alertname] = true
				}
			}
		}
	}
	for name := range alerts(t) {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s is tested to fire: %v, to be quiet: %v", name, fires[name], quiet[name])
		}
	}
}
