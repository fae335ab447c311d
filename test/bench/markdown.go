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
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// markdown is the report for people. How to read it is in the README.md beside it.
func (r *Report) markdown() []byte {
	var out bytes.Buffer
	m := r.Machine
	fmt.Fprintf(&out, "# Performance report\n\nMade by `make bench` on %s in %.0f seconds, on %d CPUs (%s, %s, %s), at a load of %s before.\n"+
		"[README.md](README.md) says how to read it.\n",
		r.Started.Format(time.DateTime+" MST"), r.Seconds, m.CPUs, m.Model, m.System, m.Go, m.Load)
	r.writeTargets(&out)
	r.writeLists(&out)
	r.writeToday(&out)
	r.writeEvents(&out)
	r.writeRequests(&out)
	r.writeScale(&out)
	return out.Bytes()
}

func table(out *bytes.Buffer, title string, columns ...string) {
	fmt.Fprintf(out, "\n## %s\n\n", title)
	row(out, columns...)
	out.WriteString("|" + strings.Repeat("---|", len(columns)) + "\n")
}

func row(out *bytes.Buffer, cells ...string) {
	out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (s Spread) String() string {
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", s.Median, s.Low, s.High)
}

// slashed writes a figure of each variant.
func slashed(format string, values ...float64) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf(format, value)
	}
	return strings.Join(texts, " / ")
}

func (r *Report) writeTargets(out *bytes.Buffer) {
	table(out, "Targets", "what", "target", "measured", "")
	for _, target := range r.Targets {
		verdict := "missed"
		if target.Met {
			verdict = "met"
		}
		row(out, target.What, target.Bound, fmt.Sprintf("%.2f", target.Actual), verdict)
	}
}

func (r *Report) writeLists(out *bytes.Buffer) {
	if len(r.Lists) == 0 {
		return
	}
	table(out, "Lists: served / custom resource / limit", "images", "as", "encoding", "caller", "clients", "p50 to CR", "p50 to limit",
		"CPU to CR", "CPU to limit", "p50 ms", "p99 ms", "CPU ms", "KB")
	for _, c := range r.Lists {
		of := func(figure func(ListCost) float64) []float64 {
			return []float64{figure(c.Variants[served]), figure(c.Variants[stored]), figure(c.Variants[atBest])}
		}
		row(out, fmt.Sprint(c.Images), c.Form, c.Encoding, c.Caller, fmt.Sprint(c.Clients),
			c.ToStored.String(), c.ToLimit.String(), c.CPUToStored.String(), c.CPUToLimit.String(),
			slashed("%.2f", of(func(l ListCost) float64 { return l.P50 })...),
			slashed("%.2f", of(func(l ListCost) float64 { return l.P99 })...),
			slashed("%.2f", of(func(l ListCost) float64 { return l.TotalCPU })...),
			slashed("%.0f", of(func(l ListCost) float64 { return float64(l.Bytes) / 1024 })...))
	}
}

func (r *Report) writeToday(out *bytes.Buffer) {
	if len(r.Today) == 0 {
		return
	}
	table(out, "One list, or a join in the client", "images", "worker disks", "times less work", "times faster", "list: p50 ms", "join: p50 ms",
		"list: CPU ms", "join: CPU ms")
	for _, c := range r.Today {
		row(out, fmt.Sprint(c.Images), fmt.Sprint(c.Disks), c.LessWork.String(), c.Faster.String(),
			fmt.Sprintf("%.2f", c.List.P50), fmt.Sprintf("%.2f", c.Join.P50), shares(c.List), shares(c.Join))
	}
}

// shares tells who did the work.
func shares(cost ListCost) string {
	return fmt.Sprintf("%.2f (%s)", cost.TotalCPU, sharesOf(cost.CPU))
}

func sharesOf(cpu map[string]float64) string {
	var parts []string
	for _, name := range charged {
		if cpu[name] >= 0.005 && name != limitProcess {
			parts = append(parts, fmt.Sprintf("%s %.2f", name, cpu[name]))
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) writeEvents(out *bytes.Buffer) {
	if len(r.Events) == 0 {
		return
	}
	table(out, "Change to event: served / custom resource", "watchers", "changes", "p50 to CR", "p99 to CR", "change by change", "p50 ms", "p99 ms",
		"CPU ms of a change", "KB per watcher")
	for _, c := range r.Events {
		own, other := c.Variants[served], c.Variants[stored]
		row(out, fmt.Sprint(c.Watchers), fmt.Sprint(c.Changes), fmt.Sprintf("**%.2f**", c.P50ToStored), fmt.Sprintf("**%.2f**", c.P99ToStored),
			c.ToStored.String(), slashed("%.2f", own.P50, other.P50), slashed("%.2f", own.P99, other.P99),
			slashed("%.2f", own.TotalCPU, other.TotalCPU), memory(c.MemoryPerWatcher))
	}
}

func memory(bytes float64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", bytes/1024)
}

func (r *Report) writeRequests(out *bytes.Buffer) {
	if len(r.Requests) == 0 {
		return
	}
	table(out, "Requests of the server to kube-apiserver", "caused by", "requests")
	for _, c := range r.Requests {
		var parts []string
		for _, request := range slices.Sorted(maps.Keys(c.Requests)) {
			parts = append(parts, fmt.Sprintf("%d × %s", c.Requests[request], request))
		}
		if parts == nil {
			parts = []string{"none"}
		}
		row(out, c.String(), strings.Join(parts, ", "))
	}
}

func (r *Report) writeScale(out *bytes.Buffer) {
	if s := r.Scale; s != nil {
		table(out, "Start in a large cluster", "images", "pools", "worker disks", "ready s", "complete s", "CPU s: server / kube-apiserver",
			"heap and stacks MiB", "resident MiB", "peak MiB")
		row(out, fmt.Sprint(s.Images), fmt.Sprint(s.Pools), fmt.Sprint(s.Disks), fmt.Sprintf("%.1f", s.Ready), fmt.Sprintf("%.1f", s.Complete),
			slashed("%.1f", s.ServerCPU, s.APIServerCPU), fmt.Sprintf("%.0f", s.Memory), fmt.Sprintf("%.0f", s.Resident), fmt.Sprintf("%.0f", s.Peak))
	}
}
