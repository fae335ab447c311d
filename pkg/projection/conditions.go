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

package projection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// Reasons of the conditions InUse, Deletable and CatalogSynced, and of every condition whose answer cannot
// be read.
const (
	ReasonDeclaredByPools   = "DeclaredByPools"
	ReasonCloneInFlight     = "CloneInFlight"
	ReasonNotInUse          = "NotInUse"
	ReasonInUse             = "InUse"
	ReasonTerminating       = "Terminating"
	ReasonSynced            = "Synced"
	ReasonDrift             = "Drift"
	ReasonRejected          = "Rejected"
	ReasonNotDeclared       = "NotDeclared"
	ReasonSourceNotReadable = "SourceNotReadable"
)

// The kinds that answers are read from, as messages name them.
const (
	kindDataVolumes = "DataVolumes"
	kindClaims      = "PersistentVolumeClaims"
	kindPools       = "KubernetesNodes"
	kindCatalog     = "The catalog"
)

// conditions are Ready, InUse, Deletable and CatalogSynced, in this order, and Stalled where it is True.
func conditions(in Image, state golden.State, image, previous *images.WorkerImage, now metav1.Time) []metav1.Condition {
	ready := metav1.Condition{Type: images.ConditionReady, Status: state.Ready, Reason: state.Reason, Message: state.Message}
	used := inUse(in)
	out := []metav1.Condition{ready, used, deletable(used, state), catalogSynced(in, image.Status.Catalog)}
	if state.Stalled() {
		out = append(out, stalled(ready))
	}

	first := image.CreationTimestamp
	if first.IsZero() {
		first = now
	}
	var before []metav1.Condition
	if sameObject(image, previous) {
		before = previous.Status.Conditions
	}
	for i := range out {
		out[i].ObservedGeneration = generation
		out[i].LastTransitionTime = transitionTime(out[i], before, first, now)
	}
	if dv := in.DataVolume; dv != nil && !sameObject(image, previous) && !dv.Ready.LastTransition.IsZero() {
		out[0].LastTransitionTime = dv.Ready.LastTransition
	}
	return out
}

// transitionTime keeps the time of a condition whose status stays. The conditions of an object that was not
// published before have the time first, so that a restart moves nothing that need not move.
func transitionTime(c metav1.Condition, before []metav1.Condition, first, now metav1.Time) metav1.Time {
	if len(before) == 0 {
		return first
	}
	if last := meta.FindStatusCondition(before, c.Type); last != nil && last.Status == c.Status {
		return last.LastTransitionTime
	}
	return now
}

func sameObject(image, previous *images.WorkerImage) bool {
	return previous != nil && previous.UID == image.UID
}

// inUse never says who uses the image: everybody who may read the image sees it.
func inUse(in Image) metav1.Condition {
	c := metav1.Condition{Type: images.ConditionInUse}
	switch unreadable := in.Sources.unreadable(kindPools, kindDataVolumes); {
	case in.Sources.Pools && len(in.Pools) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonDeclaredByPools
		c.Message = "At least one pool asks for the image. A pool at zero workers needs it for its next scale-up."
	case in.Sources.DataVolumes && inFlight(in):
		c.Status, c.Reason = metav1.ConditionTrue, ReasonCloneInFlight
		c.Message = "At least one DataVolume is being cloned from the image."
	case len(unreadable) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonSourceNotReadable, notReadable(unreadable)
	default:
		c.Status, c.Reason = metav1.ConditionFalse, ReasonNotInUse
		c.Message = "No pool asks for the image and nothing is being cloned from it."
	}
	return c
}

func inFlight(in Image) bool {
	return in.Clones > 0 || slices.ContainsFunc(in.Disks, func(d PoolDisks) bool { return d.InFlight > 0 })
}

func deletable(used metav1.Condition, state golden.State) metav1.Condition {
	c := metav1.Condition{Type: images.ConditionDeletable, Status: metav1.ConditionFalse}
	switch {
	case state.Phase == images.WorkerImageTerminating:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonTerminating, "The image is being deleted already."
	case state.Reason == ReasonSourceNotReadable:
		c.Reason, c.Message = ReasonSourceNotReadable, state.Message
	case used.Status == metav1.ConditionTrue:
		c.Reason, c.Message = ReasonInUse, used.Message
	case used.Status == metav1.ConditionUnknown:
		c.Reason, c.Message = ReasonSourceNotReadable, used.Message
	default:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonNotInUse
	}
	return c
}

// stalled says that nothing comes of waiting. kstatus takes an image that is not ready for one that will be, unless
// it has this condition.
func stalled(ready metav1.Condition) metav1.Condition {
	return metav1.Condition{Type: images.ConditionStalled, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message}
}

// catalogSynced compares the image with the catalog. What it says of drift is in status.
func catalogSynced(in Image, status *images.CatalogStatus) metav1.Condition {
	c := metav1.Condition{Type: images.ConditionCatalogSynced, Status: metav1.ConditionFalse}
	switch unreadable := in.Sources.unreadable(kindCatalog); {
	case len(unreadable) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonSourceNotReadable, notReadable(unreadable)
	case in.Catalog.Entry == nil && in.Catalog.Present():
		c.Reason, c.Message = ReasonRejected, rejected(in.Catalog.Rejections)
	case in.Catalog.Entry == nil:
		c.Reason = ReasonNotDeclared
		c.Message = "The catalog does not declare the image. It stays until it is deleted; add an entry for it if it is to be declared."
	case len(status.Drift) > 0:
		c.Reason = ReasonDrift
		c.Message = fmt.Sprintf("The image differs from its catalog entry in %s. An image never changes: correct the entry, "+
			"or declare another version or schematic and move the pools.", strings.Join(driftFields(status.Drift), ", "))
	default:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonSynced
	}
	return c
}

func driftFields(drift []images.CatalogDrift) []string {
	fields := make([]string, 0, len(drift))
	for _, d := range drift {
		fields = append(fields, d.Field)
	}
	return fields
}

// rejectionLimit is how many rejections of one image a message explains.
const rejectionLimit = 3

// rejected says why the catalog's entries for an image are not in force, and what to do.
func rejected(rejections []catalog.Rejection) string {
	var out []string
	said := sets.New[string]()
	for _, r := range rejections {
		// Entries of one pair are rejected for the same reason, which names them all.
		if !said.Has(r.Message) {
			out = append(out, r.Path+": "+r.Message)
		}
		said.Insert(r.Message)
	}
	if more := len(out) - rejectionLimit; more > 0 {
		out = append(out[:rejectionLimit], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("The catalog's entry for the image is rejected: %s. Correct the catalog.", strings.Join(out, "; "))
}

func (s Sources) unreadable(kinds ...string) []string {
	readable := map[string]bool{kindDataVolumes: s.DataVolumes, kindClaims: s.Claims, kindPools: s.Pools, kindCatalog: s.Catalog}
	return slices.DeleteFunc(kinds, func(k string) bool { return readable[k] })
}

func notReadable(kinds []string) string {
	return fmt.Sprintf("%s cannot be read from the cluster now.", strings.Join(kinds, " and "))
}
