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

package catalogreport

import (
	"k8s.io/component-base/metrics"

	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

const namespace = "workerimage"

// catalogMetrics count what is in force. They count nothing until they are registered.
type catalogMetrics struct {
	entries *metrics.GaugeVec
	valid   *metrics.Gauge
}

func newMetrics() catalogMetrics {
	return catalogMetrics{
		entries: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace:      namespace,
			Name:           "catalog_entries",
			Help:           "Entries of the catalog in force, by whether they are accepted or rejected.",
			StabilityLevel: metrics.ALPHA,
		}, []string{"state"}),
		valid: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace:      namespace,
			Name:           "catalog_valid",
			Help:           "1 if the catalog is absent or was read, 0 if it does not parse and the last good one is in force.",
			StabilityLevel: metrics.ALPHA,
		}),
	}
}

// Metrics are to be registered before the first report.
func (r *Reporter) Metrics() []metrics.Registerable {
	return []metrics.Registerable{r.metrics.entries, r.metrics.valid}
}

func (m catalogMetrics) set(report inventory.CatalogReport) {
	m.entries.WithLabelValues("accepted").Set(float64(len(report.Catalog.Entries)))
	m.entries.WithLabelValues("rejected").Set(float64(len(report.Catalog.Rejected)))
	m.valid.Set(0)
	if report.Err == "" {
		m.valid.Set(1)
	}
}
