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

package imagereport

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// component is who records the Events.
const component = "workerimage-apiserver"

// messageLimit is what the message of an Event holds.
const messageLimit = 1024

// obstacles are the reasons of condition Ready that may not pass by themselves. A claim that waits to be bound is a step of
// every import.
var obstacles = []string{
	golden.ReasonImportRetrying,
	golden.ReasonImportFailed,
	golden.ReasonImporterUnschedulable,
	golden.ReasonImagePullFailed,
	golden.ReasonNoStorageClass,
	golden.ReasonStorageClassNotFound,
	golden.ReasonClaimMissing,
	golden.ReasonClaimLost,
	golden.ReasonQuotaExceeded,
}

// obstacle is what stands in the way of a golden. The zero value is nothing.
type obstacle struct {
	golden  corev1.ObjectReference
	reason  string
	message string
}

// obstacleTo returns what stands in the way of the golden of an image.
func obstacleTo(report inventory.ImageReport) obstacle {
	if report.Image == nil {
		return obstacle{}
	}
	ready := meta.FindStatusCondition(report.Image.Status.Conditions, images.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || !slices.Contains(obstacles, ready.Reason) {
		return obstacle{}
	}
	return obstacle{golden: goldenOf(report), reason: ready.Reason, message: freeform.Clip(ready.Message, messageLimit)}
}

// isUnknown is true while it cannot be told whether anything stands in the way.
func isUnknown(report inventory.ImageReport) bool {
	return report.Image != nil && meta.IsStatusConditionPresentAndEqual(report.Image.Status.Conditions, images.ConditionReady, metav1.ConditionUnknown)
}

// goldenOf refers to the DataVolume, or to the claim where only that is left.
func goldenOf(report inventory.ImageReport) corev1.ObjectReference {
	status := report.Image.Status
	switch {
	case status.DataVolume != nil:
		return corev1.ObjectReference{
			APIVersion: cdiv1.SchemeGroupVersion.String(), Kind: "DataVolume",
			Namespace: status.DataVolume.Namespace, Name: status.DataVolume.Name, UID: report.UID,
		}
	case status.Claim != nil:
		return corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: report.Namespace, Name: status.Claim.Name, UID: report.UID}
	}
	return corev1.ObjectReference{}
}

// same is true where there is nothing new to say.
func (o obstacle) same(other obstacle) bool {
	return o.golden == other.golden && o.reason == other.reason
}

// event is what is recorded of an obstacle.
func (o obstacle) event(now metav1.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: o.golden.Namespace, Name: o.eventName()},
		InvolvedObject:      o.golden,
		Type:                corev1.EventTypeWarning,
		Reason:              o.reason,
		Message:             o.message,
		Source:              corev1.EventSource{Component: component},
		ReportingController: component,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
	}
}

// eventName is the same wherever the same is seen.
func (o obstacle) eventName() string {
	sum := sha256.Sum256([]byte(string(o.golden.UID) + " " + o.reason))
	suffix := "." + hex.EncodeToString(sum[:8])
	name := o.golden.Name
	if most := validation.DNS1123SubdomainMaxLength - len(suffix); len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return name + suffix
}
