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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// other stands for every value of a label that its vocabulary does not have.
const other = "Other"

// vocabulary are the values that a label can have, beside other.
type vocabulary []string

// fold keeps a label within its vocabulary.
func (v vocabulary) fold(value string) string {
	if slices.Contains(v, value) {
		return value
	}
	return other
}

// all are the values and what others are folded into.
func (v vocabulary) all() []string { return append(slices.Clip(v), other) }

// phases of an image.
var phases = vocabulary{
	string(images.WorkerImagePending),
	string(images.WorkerImageImporting),
	string(images.WorkerImageReady),
	string(images.WorkerImageFailed),
	string(images.WorkerImageTerminating),
	string(images.WorkerImageUnknown),
}

// conditionTypes are those of an image.
var conditionTypes = vocabulary{
	images.ConditionReady,
	images.ConditionInUse,
	images.ConditionDeletable,
	images.ConditionCatalogSynced,
	images.ConditionStalled,
}

var conditionStatuses = vocabulary{
	string(metav1.ConditionTrue),
	string(metav1.ConditionFalse),
	string(metav1.ConditionUnknown),
}

// conditionReasons are those of the conditions of an image.
var conditionReasons = vocabulary{
	golden.ReasonReady,
	golden.ReasonPending,
	golden.ReasonImporting,
	golden.ReasonImportRetrying,
	golden.ReasonImportFailed,
	golden.ReasonImporterUnschedulable,
	golden.ReasonImagePullFailed,
	golden.ReasonNoStorageClass,
	golden.ReasonStorageClassNotFound,
	golden.ReasonClaimMissing,
	golden.ReasonClaimPending,
	golden.ReasonClaimLost,
	golden.ReasonWaitForFirstConsumer,
	golden.ReasonPaused,
	golden.ReasonQuotaExceeded,
	golden.ReasonTerminating,
	golden.ReasonPhaseUnknown,
	projection.ReasonDeclaredByPools,
	projection.ReasonCloneInFlight,
	projection.ReasonNotInUse,
	projection.ReasonInUse,
	projection.ReasonSynced,
	projection.ReasonDrift,
	projection.ReasonRejected,
	projection.ReasonNotDeclared,
	projection.ReasonSourceNotReadable,
}

// verdicts are the reasons of the verdicts on pools.
var verdicts = vocabulary{
	pool.ReasonInvalidSelection,
	pool.ReasonGoldenMissing,
	pool.ReasonGoldenFailed,
	pool.ReasonGoldenFailing,
	pool.ReasonGoldenTerminating,
	pool.ReasonGoldenStateUnknown,
	pool.ReasonStorageClassMismatch,
	pool.ReasonDiskTooSmall,
	pool.ReasonStorageClassUnknown,
	pool.ReasonGoldenSizeUnknown,
	pool.ReasonGoldenImporting,
	pool.ReasonHostAssistedCopy,
	pool.ReasonStorageClassMatch,
	projection.ReasonSourceNotReadable,
}

// refusals are the reasons for which a delete is refused.
var refusals = vocabulary{
	projection.ReasonInUse,
	projection.ReasonSourceNotReadable,
}

// verbs that write. Every kind of patch is an update.
var verbs = vocabulary{"create", "update", "delete"}

// writeResults are success and the reasons of the API for which a write fails.
var writeResults = vocabulary{
	metav1.StatusSuccess,
	string(metav1.StatusReasonAlreadyExists),
	string(metav1.StatusReasonBadRequest),
	string(metav1.StatusReasonConflict),
	string(metav1.StatusReasonForbidden),
	string(metav1.StatusReasonInternalError),
	string(metav1.StatusReasonInvalid),
	string(metav1.StatusReasonNotFound),
	string(metav1.StatusReasonServiceUnavailable),
	string(metav1.StatusReasonTimeout),
	string(metav1.StatusReasonTooManyRequests),
}

// The answers to a question about what a caller may see.
const (
	answerAllowed = "allowed"
	answerDenied  = "denied"
	answerFailed  = "failed"
)

var answers = vocabulary{answerAllowed, answerDenied, answerFailed}
