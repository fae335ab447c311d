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
	"time"

	"k8s.io/component-base/metrics"

	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// namespace is what the names of all metrics of this server begin with.
const namespace = "workerimage"

// State is where a Collector reads what is not recorded. All of it is required.
type State struct {
	// Sources are the kinds that images are joined from.
	Sources func() []inventory.SourceHealth
	// Work is how much was done so far.
	Work func() inventory.Stats
	// Logs are the logs by the resource that they hold.
	Logs map[string]func() memory.LogStats
	// Certificate returns the serving certificate as PEM.
	Certificate func() []byte
}

// Collector reads a State and what was recorded, each time that it is asked.
type Collector struct {
	metrics.BaseStableCollector

	recorder *Recorder
	state    State
	descs    descs
}

var _ metrics.StableCollector = &Collector{}

// NewCollector returns a Collector that is to be registered once.
func NewCollector(recorder *Recorder, state State) *Collector {
	return &Collector{recorder: recorder, state: state, descs: newDescs()}
}

// DescribeWithStability sends every description.
func (c *Collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range c.descs.all() {
		ch <- d
	}
}

// CollectWithStability sends every metric.
func (c *Collector) CollectWithStability(ch chan<- metrics.Metric) {
	out := sink{ch}
	c.collectSources(out)
	c.collectProjections(out)
	c.collectLogs(out)
	c.collectImages(out)
	c.collectRequests(out)
	c.collectCertificate(out)
}

func (c *Collector) collectSources(out sink) {
	for _, s := range c.state.Sources() {
		out.gauge(c.descs.sourceObjects, float64(s.Objects), s.Name)
		out.gauge(c.descs.sourceReadable, boolean(s.Readable), s.Name)
		out.time(c.descs.sourceLastEvent, s.LastEvent, s.Name)
		out.counter(c.descs.sourceLists, s.Lists, s.Name)
		out.counter(c.descs.sourceFailures, s.Failures, s.Name)
	}
}

func (c *Collector) collectProjections(out sink) {
	work := c.state.Work()
	out.counter(c.descs.projectedObjects, work.Published, "published")
	out.counter(c.descs.projectedObjects, work.Unchanged, "unchanged")
	out.counter(c.descs.projectedObjects, work.Deferred, "deferred")
	out.counter(c.descs.projectedObjects, work.Failed, "failed")
}

func (c *Collector) collectLogs(out sink) {
	for _, resource := range sortedNames(c.state.Logs) {
		stats := c.state.Logs[resource]()
		out.gauge(c.descs.logObjects, float64(stats.Objects), resource)
		out.counter(c.descs.logEvents, stats.Published, resource)
		out.gauge(c.descs.logWindowEvents, float64(stats.Events), resource)
		out.gauge(c.descs.logWindowCapacity, float64(stats.Window), resource)
		out.gauge(c.descs.logWindowBytes, float64(stats.EventBytes), resource)
		out.gauge(c.descs.logWatchers, float64(stats.Watchers), resource)
		out.counter(c.descs.logOvertakenWatchers, uint64(stats.Overtaken), resource)
	}
}

func (c *Collector) collectImages(out sink) {
	images, pools := c.recorder.published.all()
	inPhase := byPhase(images)
	for _, phase := range phases.all() {
		out.gauge(c.descs.images, float64(inPhase[phase]), phase)
	}
	for _, name := range sortedNames(images) {
		for _, condition := range images[name].conditions {
			out.gauge(c.descs.imageCondition, 1, name, condition.kind, condition.status, condition.reason)
		}
		out.time(c.descs.imageUnusedSince, images[name].unusedSince, name)
	}
	for _, reason := range verdicts.all() {
		out.gauge(c.descs.pools, float64(pools[reason]), reason)
	}
}

func (c *Collector) collectRequests(out sink) {
	for _, verb := range verbs {
		for _, result := range writeResults.all() {
			out.counter(c.descs.writes, c.recorder.writes.get(write{verb, result}), verb, result)
		}
	}
	for _, reason := range refusals.all() {
		out.counter(c.descs.refusedDeletes, c.recorder.refusals.get(reason), reason)
	}
	for _, answer := range answers {
		out.counter(c.descs.viewQuestions, c.recorder.questions.get(answer), answer)
	}
}

func (c *Collector) collectCertificate(out sink) {
	if certificate := leaf(c.state.Certificate()); certificate != nil {
		out.time(c.descs.certificateNotBefore, certificate.NotBefore)
		out.time(c.descs.certificateNotAfter, certificate.NotAfter)
	}
}

// sink is where metrics are sent.
type sink struct{ ch chan<- metrics.Metric }

func (s sink) gauge(desc *metrics.Desc, value float64, labels ...string) {
	s.ch <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
}

func (s sink) counter(desc *metrics.Desc, value uint64, labels ...string) {
	s.ch <- metrics.NewLazyConstMetric(desc, metrics.CounterValue, float64(value), labels...)
}

// time sends a point in time, unless there is none.
func (s sink) time(desc *metrics.Desc, at time.Time, labels ...string) {
	if !at.IsZero() {
		s.gauge(desc, float64(at.UnixMilli())/1000, labels...)
	}
}

func boolean(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
