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

package golden

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// Reasons of the condition Ready.
const (
	ReasonReady                 = "Ready"
	ReasonPending               = "Pending"
	ReasonImporting             = "Importing"
	ReasonImportRetrying        = "ImportRetrying"
	ReasonImportFailed          = "ImportFailed"
	ReasonImporterUnschedulable = "ImporterUnschedulable"
	ReasonImagePullFailed       = "ImagePullFailed"
	ReasonNoStorageClass        = "NoStorageClass"
	ReasonStorageClassNotFound  = "StorageClassNotFound"
	ReasonClaimMissing          = "ClaimMissing"
	ReasonClaimPending          = "ClaimPending"
	ReasonClaimLost             = "ClaimLost"
	ReasonWaitForFirstConsumer  = "WaitForFirstConsumer"
	ReasonPaused                = "Paused"
	ReasonQuotaExceeded         = "QuotaExceeded"
	ReasonTerminating           = "Terminating"
	ReasonPhaseUnknown          = "PhaseUnknown"
)

// FailingRestarts is how many restarts make an import one that keeps failing.
const FailingRestarts = 3

// StateOf tells where a golden stands, from its DataVolume and the claim that the DataVolume names, whoever
// owns it. CDI says Succeeded before the claim is bound, and goes on saying so when the claim is lost or
// gone, so its word alone makes nothing ready.
func StateOf(dv *DataVolume, claim *Claim, class Class) State {
	if dv == nil {
		return stateOfBareClaim(claim)
	}
	state := stateOfDataVolume(dv, claim, class)
	state.Failing = dv.Phase != string(cdiv1.Succeeded) && dv.RestartCount >= FailingRestarts
	return state
}

// Stalled is true for a golden that will not become ready unless somebody acts: CDI does not try again, or waits for
// what nobody makes by himself. An import that is restarted, a pod that finds no node and a claim that is to be bound
// may come right.
func (s State) Stalled() bool {
	switch s.Reason {
	case ReasonImportFailed,
		ReasonClaimLost,
		ReasonNoStorageClass,
		ReasonStorageClassNotFound,
		ReasonQuotaExceeded,
		ReasonPaused,
		ReasonWaitForFirstConsumer:
		return true
	}
	return false
}

func stateOfDataVolume(dv *DataVolume, claim *Claim, class Class) State {
	own := OwnClaim(dv, claim)
	if dv.Deleting || (own != nil && own.Deleting) {
		return terminating()
	}
	switch phase := phaseOf(cdiv1.DataVolumePhase(dv.Phase)); phase {
	case images.WorkerImageReady:
		return stateOfSucceeded(dv, claim, own)
	case images.WorkerImageFailed:
		return notReady(phase, ReasonImportFailed, withWords("The import failed and CDI does not try again. "+
			"Delete the image, remove the cause and create it again.", dv.Running.Message, dv.Ready.Message))
	case images.WorkerImageUnknown:
		return unknown(fmt.Sprintf("CDI reports phase %q. Look at the DataVolume and at CDI itself.", dv.Phase))
	default:
		return stateOfUnfinished(unfinished{phase: phase, dv: dv, claim: own, class: class})
	}
}

// phaseOf translates CDI's word. A word that it does not list is one of a newer CDI.
func phaseOf(phase cdiv1.DataVolumePhase) images.WorkerImagePhase {
	switch phase {
	case cdiv1.PhaseUnset,
		cdiv1.Pending,
		cdiv1.PVCBound,
		cdiv1.WaitForFirstConsumer,
		cdiv1.PendingPopulation,
		cdiv1.Paused:
		return images.WorkerImagePending
	case cdiv1.ImportScheduled,
		cdiv1.ImportInProgress,
		cdiv1.CloneScheduled,
		cdiv1.CloneInProgress,
		cdiv1.SnapshotForSmartCloneInProgress,
		cdiv1.CloneFromSnapshotSourceInProgress,
		cdiv1.SmartClonePVCInProgress,
		cdiv1.CSICloneInProgress,
		cdiv1.ExpansionInProgress,
		cdiv1.NamespaceTransferInProgress,
		cdiv1.UploadScheduled,
		cdiv1.UploadReady,
		cdiv1.PrepClaimInProgress,
		cdiv1.RebindInProgress:
		return images.WorkerImageImporting
	case cdiv1.Succeeded:
		return images.WorkerImageReady
	case cdiv1.Failed:
		return images.WorkerImageFailed
	case cdiv1.Unknown:
		return images.WorkerImageUnknown
	}
	return images.WorkerImageUnknown
}

// stateOfSucceeded holds CDI's word against the claim.
func stateOfSucceeded(dv *DataVolume, claim, own *Claim) State {
	switch {
	case own == nil && claim != nil && claim.Name == dv.Claim():
		return notReady(images.WorkerImagePending, ReasonClaimMissing, fmt.Sprintf("Claim %s belongs to another DataVolume. "+
			"CDI makes a new one when that one is gone.", dv.Claim()))
	case own == nil:
		return notReady(images.WorkerImagePending, ReasonClaimMissing, fmt.Sprintf("Claim %s does not exist. "+
			"CDI makes it again and imports once more.", dv.Claim()))
	case own.Phase == corev1.ClaimLost:
		return claimLost(images.WorkerImageFailed, own)
	case own.Phase != corev1.ClaimBound:
		return notReady(images.WorkerImageImporting, ReasonClaimPending,
			fmt.Sprintf("The image is complete and claim %s waits to be bound. Look at the events of the claim if it stays so.", own.Name))
	case own.Owner != dv.UID:
		return notReady(images.WorkerImageImporting, ReasonClaimPending,
			fmt.Sprintf("The image is complete and claim %s waits to be adopted by its DataVolume.", own.Name))
	}
	return ready("")
}

func stateOfBareClaim(claim *Claim) State {
	switch {
	case claim == nil:
		return unknown("There is neither a DataVolume nor a claim.")
	case claim.Deleting:
		return terminating()
	case claim.Phase == corev1.ClaimLost:
		return claimLost(images.WorkerImageFailed, claim)
	case claim.Phase != corev1.ClaimBound || !claim.Populated:
		return notReady(images.WorkerImagePending, ReasonClaimPending,
			fmt.Sprintf("Claim %s has no DataVolume and is not filled and bound.", claim.Name))
	}
	return ready(fmt.Sprintf("The DataVolume is gone. Its claim %s holds the image, and clones read the claim.", claim.Name))
}

// unfinished is a golden whose import has not come to an end.
type unfinished struct {
	phase images.WorkerImagePhase
	dv    *DataVolume
	claim *Claim
	class Class
}

// stateOfUnfinished returns the first obstacle that stands in the way, the one that only a person can
// remove before the one that may pass.
func stateOfUnfinished(u unfinished) State {
	for _, obstacle := range []func(unfinished) (reason, message string, found bool){
		lostClaim,
		unusableClass,
		exceededQuota,
		unschedulableImporter,
		failedImagePull,
		paused,
		missingConsumer,
		restartedImport,
	} {
		if reason, message, found := obstacle(u); found {
			return notReady(u.phase, reason, message)
		}
	}
	if u.phase == images.WorkerImagePending {
		return notReady(u.phase, ReasonPending, withWords("The import has not begun.", u.dv.Running.Message, u.dv.bindingMessage()))
	}
	return notReady(u.phase, ReasonImporting, withWords("The image is being imported.", u.dv.Running.Message))
}

func lostClaim(u unfinished) (reason, message string, found bool) {
	if u.claim == nil || u.claim.Phase != corev1.ClaimLost {
		return "", "", false
	}
	lost := claimLost(u.phase, u.claim)
	return lost.Reason, lost.Message, true
}

// unusableClass tells three causes apart for which CDI has one message. CDI goes on repeating it for a
// moment when the cause is gone.
func unusableClass(u unfinished) (reason, message string, found bool) {
	if u.phase != images.WorkerImagePending || (u.claim != nil && u.claim.Phase == corev1.ClaimBound) {
		return "", "", false
	}
	switch u.class.Problem {
	case NoClass:
		return ReasonNoStorageClass, "The DataVolume or its claim asks for no StorageClass at all (storageClassName \"\"), so no volume is made for it. " +
			"Delete the image and create it again with a class.", true
	case NoDefault:
		return ReasonNoStorageClass, "No StorageClass is named and the cluster has no default. " +
			"Mark a class as the default, or delete the image and create it again with a class.", true
	case NotFound:
		return ReasonStorageClassNotFound, fmt.Sprintf("StorageClass %s does not exist. "+
			"Create it, or delete the image and create it again with another class.", u.class.Effective), true
	}
	return "", "", false
}

func exceededQuota(u unfinished) (reason, message string, found bool) {
	for _, condition := range []Condition{u.dv.Running, u.dv.Bound, u.dv.Ready} {
		if condition.Status != "True" && (condition.Reason == "ErrExceededQuota" || strings.Contains(condition.Message, "exceeded quota")) {
			return ReasonQuotaExceeded, withWords("A quota does not allow the import. Raise the quota of the namespace.", condition.Message), true
		}
	}
	return "", "", false
}

func unschedulableImporter(u unfinished) (reason, message string, found bool) {
	running := u.dv.Running
	if running.Status == "True" || running.Reason != "Unschedulable" {
		return "", "", false
	}
	return ReasonImporterUnschedulable, withWords("No node takes the importer pod. Look at the events of the pod.", running.Message), true
}

func failedImagePull(u unfinished) (reason, message string, found bool) {
	running := u.dv.Running
	if running.Status == "True" || running.Reason != "ImagePullFailed" {
		return "", "", false
	}
	return ReasonImagePullFailed, withWords("The container image of the importer cannot be pulled. Check the registry that CDI is installed from.",
		running.Message), true
}

func paused(u unfinished) (reason, message string, found bool) {
	if u.dv.Phase != string(cdiv1.Paused) {
		return "", "", false
	}
	return ReasonPaused, withWords("The import is paused. It goes on when its DataVolume gets its next checkpoint.", u.dv.Running.Message), true
}

func missingConsumer(u unfinished) (reason, message string, found bool) {
	if u.dv.Phase != string(cdiv1.WaitForFirstConsumer) && u.dv.Phase != string(cdiv1.PendingPopulation) {
		return "", "", false
	}
	return ReasonWaitForFirstConsumer, "The StorageClass binds a claim to its first consumer, and there is none yet. " +
		"The import begins with it, or at once if the DataVolume asks for immediate binding.", true
}

// restartedImport holds between two tries as well: Running turns True with each of them.
func restartedImport(u unfinished) (reason, message string, found bool) {
	if u.dv.RestartCount == 0 {
		return "", "", false
	}
	return ReasonImportRetrying, withWords(fmt.Sprintf("The import has been restarted (restarts: %d). "+
		"Check that the source can be reached and holds the image.", u.dv.RestartCount),
		u.dv.Running.Message, u.dv.bindingMessage()), true
}

// bindingMessage is why the claim is not bound, without the names of the claims that CDI makes on the way: it
// repeats there what the importer said last.
func (dv *DataVolume) bindingMessage() string {
	if dv.Bound.Status == "True" {
		return ""
	}
	message := dv.Bound.Message
	if _, after, found := strings.Cut(message, " Pending and "); found {
		message = after
	}
	if _, after, found := strings.Cut(message, "] : "); found && strings.HasPrefix(message, "[") {
		message = after
	}
	return message
}

// withWords adds the first of CDI's own messages that says anything.
func withWords(message string, words ...string) string {
	for _, word := range words {
		if word != "" {
			return message + " CDI: " + word
		}
	}
	return message
}

func ready(message string) State {
	return State{Phase: images.WorkerImageReady, Ready: metav1.ConditionTrue, Reason: ReasonReady, Message: message}
}

func notReady(phase images.WorkerImagePhase, reason, message string) State {
	return State{Phase: phase, Ready: metav1.ConditionFalse, Reason: reason, Message: message}
}

func unknown(message string) State {
	return State{Phase: images.WorkerImageUnknown, Ready: metav1.ConditionUnknown, Reason: ReasonPhaseUnknown, Message: message}
}

func terminating() State {
	return notReady(images.WorkerImageTerminating, ReasonTerminating, "The image is being deleted.")
}

func claimLost(phase images.WorkerImagePhase, claim *Claim) State {
	return notReady(phase, ReasonClaimLost, fmt.Sprintf("Claim %s has lost its volume. "+
		"Delete the image and create it again.", claim.Name))
}
