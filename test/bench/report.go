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
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// What is aimed for.
const (
	targetImages      = 200
	targetListStored  = 0.45
	targetListLimit   = 1.15
	targetEventStored = 1.25
	targetLessWork    = 20
)

// Report is all that was measured.
type Report struct {
	Started  time.Time      `json:"started"`
	Seconds  float64        `json:"seconds"`
	Machine  Machine        `json:"machine"`
	Lists    []ListCell     `json:"lists,omitempty"`
	Today    []TodayCell    `json:"today,omitempty"`
	Events   []EventCell    `json:"events,omitempty"`
	Requests []RequestCount `json:"requests,omitempty"`
	Scale    *Scale         `json:"scale,omitempty"`
	Targets  []Target       `json:"targets"`
}

// Machine is what everything ran on.
type Machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"`
	Go     string `json:"go"`
	System string `json:"system"`
	// Load is the number of processes that wanted to run when the measurement began.
	Load string `json:"load"`
}

// Target is something aimed for, and what was measured.
type Target struct {
	What   string  `json:"what"`
	Bound  string  `json:"bound"`
	Actual float64 `json:"actual"`
	Met    bool    `json:"met"`
}

func newReport(*options) *Report {
	return &Report{Started: time.Now().UTC().Truncate(time.Second), Machine: machine()}
}

func machine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan() && m.Model == ""; {
			if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
				m.Model = strings.TrimSpace(value)
			}
		}
	}
	if content, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(content), " ")
	}
	return m
}

// finish judges.
func (r *Report) finish() {
	r.Seconds = time.Since(r.Started).Round(time.Second).Seconds()
	for _, cell := range r.Lists {
		if cell.Images != targetImages || cell.Form != forms[0].Name || cell.Caller != operator || cell.Clients != 1 {
			continue
		}
		what := fmt.Sprintf("list of %d images, %s, p50 ", cell.Images, cell.Encoding)
		r.atMost(what+"to the custom resource's", cell.ToStored.Median, targetListStored)
		r.atMost(what+"to the limit", cell.ToLimit.Median, targetListLimit)
	}
	for _, cell := range r.Events {
		r.atMost(fmt.Sprintf("change to event for %d watchers, p99 to the custom resource's", cell.Watchers), cell.P99ToStored, targetEventStored)
	}
	for _, cell := range r.Today {
		if cell.Images == targetImages {
			r.Targets = append(r.Targets, Target{
				What:  fmt.Sprintf("work of a join in the client to that of a list, %d images", cell.Images),
				Bound: fmt.Sprintf("≥ %d", targetLessWork), Actual: cell.LessWork.Median, Met: cell.LessWork.Median >= targetLessWork,
			})
		}
	}
	for i, count := range r.Requests {
		if i > 0 {
			r.atMost("requests beyond authorization for "+count.String(), float64(count.beyond(r.Requests[0])), 0)
		}
	}
}

func (r *Report) atMost(what string, actual, bound float64) {
	r.Targets = append(r.Targets, Target{What: what, Bound: fmt.Sprintf("≤ %v", bound), Actual: actual, Met: actual <= bound})
}

// write writes both reports into a directory.
func (r *Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), r.markdown(), 0o644)
}
