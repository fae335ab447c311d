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
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// DefaultRules is the rules file of a stack that was given none.
//
//go:embed rules.yaml
var DefaultRules string

// Outcome is what becomes of a pod.
type Outcome string

const (
	// Succeed lets the container end well after its duration.
	Succeed Outcome = "Succeed"
	// Fail lets the container exit with an error after its duration, and be restarted, Failures times or for ever.
	Fail Outcome = "Fail"
	// Hold stops the progress at Progress, and the container never ends.
	Hold Outcome = "Hold"
	// ChecksumMismatch lets the importer find that the image is not the one it was promised.
	ChecksumMismatch Outcome = "ChecksumMismatch"
	// ImagePullBackOff keeps the container from starting.
	ImagePullBackOff Outcome = "ImagePullBackOff"
	// Unschedulable keeps the pod off every node.
	Unschedulable Outcome = "Unschedulable"
)

var outcomes = []Outcome{Succeed, Fail, Hold, ChecksumMismatch, ImagePullBackOff, Unschedulable}

const (
	defaultDuration = 3 * time.Second
	defaultBackoff  = 3 * time.Second
	maxBackoff      = 20 * time.Second
)

// Rules order what the simulator does.
type Rules struct {
	// StartDelay is how long the kubelet takes to start a container.
	StartDelay metav1.Duration `json:"startDelay,omitempty"`
	// ProvisionDelay is how long the storage takes to make or to grow a volume.
	ProvisionDelay metav1.Duration `json:"provisionDelay,omitempty"`
	// HoldProvision lists parts of NAMESPACE/NAME of claims that get no volume.
	HoldProvision []string `json:"holdProvision,omitempty"`
	// Rules are tried in order, and the first that matches a pod decides. A pod without one succeeds.
	Rules []Rule `json:"rules,omitempty"`
}

// Rule orders what becomes of the pods it matches.
type Rule struct {
	// Match is a part of the pod's NAMESPACE/NAME or of the URL it imports from.
	Match   string  `json:"match"`
	Outcome Outcome `json:"outcome,omitempty"`
	// Duration is how long the container runs.
	Duration metav1.Duration `json:"duration,omitempty"`
	// Message and ExitCode are what a failing container ends with.
	Message  string `json:"message,omitempty"`
	ExitCode int32  `json:"exitCode,omitempty"`
	// Failures is how often the container fails before it succeeds; zero means for ever.
	Failures int32 `json:"failures,omitempty"`
	// Backoff is the kubelet's wait before the second restart; it doubles with each one after that.
	Backoff metav1.Duration `json:"backoff,omitempty"`
	// Progress is the percentage at which Hold stops.
	Progress float64 `json:"progress,omitempty"`
}

// ReadRules reads a rules file, in YAML or JSON.
func ReadRules(path string) (Rules, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Rules{}, err
	}
	var rules Rules
	if err := yaml.UnmarshalStrict(content, &rules); err != nil {
		return Rules{}, fmt.Errorf("read %s: %w", path, err)
	}
	for i, rule := range rules.Rules {
		if rule.Match == "" {
			return Rules{}, fmt.Errorf("read %s: rule %d matches nothing: match is empty", path, i)
		}
		if rule.Outcome != "" && !slices.Contains(outcomes, rule.Outcome) {
			return Rules{}, fmt.Errorf("read %s: rule %d: unknown outcome %q, known are %q", path, i, rule.Outcome, outcomes)
		}
	}
	return rules, nil
}

// WriteRules replaces a rules file in one step, so that a reader never sees half of one.
func WriteRules(path string, rules Rules) error {
	content, err := yaml.Marshal(rules)
	if err != nil {
		return err
	}
	scratch, err := os.CreateTemp(filepath.Dir(path), ".rules-")
	if err != nil {
		return err
	}
	defer os.Remove(scratch.Name())
	if _, err := scratch.Write(content); err != nil {
		return errors.Join(err, scratch.Close())
	}
	if err := scratch.Close(); err != nil {
		return err
	}
	return os.Rename(scratch.Name(), path)
}

// forPod returns the rule for a pod, named NAMESPACE/NAME, that imports from url, complete with defaults.
func (r Rules) forPod(name, url string) Rule {
	found := Rule{}
	for _, rule := range r.Rules {
		if strings.Contains(name, rule.Match) || strings.Contains(url, rule.Match) {
			found = rule
			break
		}
	}
	if found.Outcome == "" {
		found.Outcome = Succeed
	}
	if found.Duration.Duration == 0 {
		found.Duration.Duration = defaultDuration
	}
	if found.Backoff.Duration == 0 {
		found.Backoff.Duration = defaultBackoff
	}
	if found.ExitCode == 0 {
		found.ExitCode = 1
	}
	return found
}

// holdsProvision says whether a claim, named NAMESPACE/NAME, gets no volume.
func (r Rules) holdsProvision(name string) bool {
	return slices.ContainsFunc(r.HoldProvision, func(part string) bool { return strings.Contains(name, part) })
}

// fails says whether the run after so many restarts is a failing one.
func (r Rule) fails(restarts int32) bool {
	return r.Outcome == Fail && (r.Failures == 0 || restarts < r.Failures)
}

// progress is the percentage a container shows after running for a while.
func (r Rule) progress(ran time.Duration, restarts int32) float64 {
	percent := min(100, 100*ran.Seconds()/r.Duration.Seconds())
	switch {
	case r.fails(restarts):
		return percent * 0.4
	case r.Outcome == Hold:
		return min(percent, r.Progress)
	default:
		return percent
	}
}

// backoff is the kubelet's wait before the next restart: none before the first.
func (r Rule) backoff(restarts int32) time.Duration {
	if restarts == 0 {
		return 0
	}
	wait := r.Backoff.Duration
	for i := int32(1); i < restarts && wait < maxBackoff; i++ {
		wait *= 2
	}
	return wait
}
