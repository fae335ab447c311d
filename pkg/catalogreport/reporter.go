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
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// Reasons of the Events.
const (
	// ReasonInvalid is that of a text that is no catalog.
	ReasonInvalid = "CatalogInvalid"
	// ReasonEntryRejected is that of an entry that is not in force.
	ReasonEntryRejected = "CatalogEntryRejected"
	// ReasonWarning is that of something that rejects nothing by itself.
	ReasonWarning = "CatalogWarning"
)

const (
	// eventLimit bounds the Events about rejected entries, so that the rate limit for Events leaves room for
	// those about the next catalogs. The entries themselves say why they are rejected.
	eventLimit = 5
	// messageLimit is what the message of an Event holds.
	messageLimit = 1024
)

// Reporter tells what became of one catalog.
type Reporter struct {
	name     types.NamespacedName
	recorder record.EventRecorder
	metrics  catalogMetrics
}

// New returns a Reporter on the catalog in the ConfigMap of that name. Without a recorder the log has to do.
func New(name types.NamespacedName, recorder record.EventRecorder) *Reporter {
	return &Reporter{name: name, recorder: recorder, metrics: newMetrics()}
}

// Report tells what became of a catalog.
func (r *Reporter) Report(ctx context.Context, report inventory.CatalogReport) {
	r.metrics.set(report)
	if report.Err != "" {
		// What the catalog in force rejects was reported when it was read.
		r.warn(ctx, report.UID, ReasonInvalid, report.Err+"; the last good catalog stays in force")
		return
	}
	klog.FromContext(ctx).Info("Read the catalog", "configMap", r.name, "isThere", report.UID != "",
		"entries", len(report.Catalog.Entries), "rejected", len(report.Catalog.Rejected))
	for _, warning := range report.Catalog.Warnings {
		r.warn(ctx, report.UID, ReasonWarning, warning)
	}
	r.warnOfRejections(ctx, report.UID, report.Catalog.Rejected)
}

func (r *Reporter) warnOfRejections(ctx context.Context, uid types.UID, rejected []catalog.Rejection) {
	for _, rejection := range rejected[:min(len(rejected), eventLimit)] {
		r.warn(ctx, uid, ReasonEntryRejected, rejection.String())
	}
	if more := len(rejected) - eventLimit; more > 0 {
		r.warn(ctx, uid, ReasonEntryRejected, fmt.Sprintf("and %d more; those with a legal pair are among the catalogentries with status.phase=Invalid", more))
	}
}

// warn logs, and records an Event on the ConfigMap.
func (r *Reporter) warn(ctx context.Context, uid types.UID, reason, message string) {
	message = freeform.Clip(message, messageLimit)
	klog.FromContext(ctx).Info("The catalog has a fault", "configMap", r.name, "reason", reason, "message", message)
	if r.recorder == nil {
		return
	}
	configMap := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: r.name.Namespace, Name: r.name.Name, UID: uid}
	r.recorder.Event(configMap, corev1.EventTypeWarning, reason, message)
}
