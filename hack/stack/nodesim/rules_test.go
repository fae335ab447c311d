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

package nodesim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFirstMatchingRuleDecides(t *testing.T) {
	rules := Rules{Rules: []Rule{
		{Match: "/image/bad/", Outcome: Fail, Duration: seconds(1)},
		{Match: "/image/", Duration: seconds(7)},
		{Match: "tenant-a/", Outcome: Hold},
	}}
	for name, test := range map[string]struct {
		pod, url string
		outcome  Outcome
		duration time.Duration
	}{
		"the URL matches the first rule":          {"cozy-public/importer", "https://f/image/bad/v1", Fail, time.Second},
		"the URL matches only the second":         {"cozy-public/importer", "https://f/image/good/v1", Succeed, 7 * time.Second},
		"the name matches where the URL is empty": {"tenant-a/source-pod", "", Hold, defaultDuration},
		"the URL is looked at before later rules": {"tenant-a/importer", "https://f/image/good/v1", Succeed, 7 * time.Second},
		"a pod that matches nothing succeeds":     {"tenant-b/importer", "", Succeed, defaultDuration},
		"another namespace is not matched":        {"tenant-ab/importer", "", Succeed, defaultDuration},
	} {
		t.Run(name, func(t *testing.T) {
			got := rules.forPod(test.pod, test.url)
			if got.Outcome != test.outcome || got.Duration.Duration != test.duration {
				t.Errorf("got %s after %s, want %s after %s", got.Outcome, got.Duration.Duration, test.outcome, test.duration)
			}
		})
	}
}

func TestProgressOfARun(t *testing.T) {
	rule := Rule{Outcome: Succeed, Duration: seconds(10)}
	failing := Rule{Outcome: Fail, Failures: 1, Duration: seconds(10)}
	holding := Rule{Outcome: Hold, Progress: 42, Duration: seconds(10)}
	for name, test := range map[string]struct {
		rule     Rule
		ran      time.Duration
		restarts int32
		want     float64
	}{
		"grows with time":                        {rule, 5 * time.Second, 0, 50},
		"ends at one hundred":                    {rule, 20 * time.Second, 0, 100},
		"of a failing run never reaches the end": {failing, 10 * time.Second, 0, 40},
		"of the run after the last failure does": {failing, 10 * time.Second, 1, 100},
		"is held":                                {holding, 10 * time.Second, 0, 42},
		"grows until it is held":                 {holding, 2 * time.Second, 0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.rule.progress(test.ran, test.restarts); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestBackoffDoublesAfterTheFirstRestart(t *testing.T) {
	rule := Rule{Backoff: seconds(3)}
	got := make([]time.Duration, 0, 6)
	for restarts := range int32(6) {
		got = append(got, rule.backoff(restarts)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{0, 3, 6, 12, 24, 24}, got); diff != "" {
		t.Errorf("back-off in seconds after each restart (-want +got):\n%s", diff)
	}
}

func TestReadRulesRefusesWhatItCannotFollow(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"an outcome nobody knows":          {"rules: [{match: a, outcome: Explode}]", "Explode"},
		"a rule that would match all pods": {"rules: [{outcome: Fail}]", "match is empty"},
		"a misspelt key":                   {"rules: [{match: a, outcom: Fail}]", "outcom"},
		"a duration without a unit":        {"startDelay: 3", "startDelay"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rules.yaml")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadRules(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one about %q", err, test.want)
			}
		})
	}
}

func TestDefaultRulesOrderWhatTheirWordsSay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(DefaultRules), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := ReadRules(path)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]Outcome{
		"unpublished-zfs": Fail,
		"flaky-zfs":       Fail,
		"stuck-zfs":       Hold,
		"corrupt-zfs":     ChecksumMismatch,
		"unpullable-zfs":  ImagePullBackOff,
		"unschedulable":   Unschedulable,
		"slow-zfs":        Succeed,
		"zfs":             Succeed,
	} {
		if got := rules.forPod("cozy-public/importer", "https://factory.talos.dev/image/"+id+"/v1.13.6/openstack-amd64.raw.xz"); got.Outcome != want {
			t.Errorf("%s: got %s, want %s", id, got.Outcome, want)
		}
	}
}

func TestWrittenRulesReadBackTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	want := Rules{
		StartDelay:    seconds(1),
		HoldProvision: []string{"tenant-a/"},
		Rules:         []Rule{{Match: "a", Outcome: Fail, Duration: seconds(2), Message: "no", ExitCode: 3, Failures: 4, Backoff: seconds(5)}},
	}
	if err := WriteRules(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRules(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func seconds(n int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Second}
}
