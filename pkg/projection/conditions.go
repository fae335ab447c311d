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

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// Reasons of the conditions InUse and Deletable, and of every condition whose answer cannot be read.
const (
	ReasonDeclaredByPools   = "DeclaredByPools"
	ReasonCloneInFlight     = "CloneInFlight"
	ReasonNotInUse          = "NotInUse"
	ReasonInUse             = "InUse"
	ReasonTerminating       = "Terminating"
	ReasonSourceNotReadable = "SourceNotReadable"
)

// The kinds that answers are read from, as messages name them.
const (
	kindDataVolumes = "DataVolumes"
	kindClaims      = "PersistentVolumeClaims"
	kindPools       = "KubernetesNodes"
)

// conditions are Ready, InUse and Deletable, in this order.
func conditions(in Image, state golden.State, image, previous *images.WorkerImage, now metav1.Time) []metav1.Condition {
	ready := metav1.Condition{Type: images.ConditionReady, Status: state.Ready, Reason: state.Reason, Message: state.Message}
	used := inUse(in)
	out := []metav1.Condition{ready, used, deletable(used, state)}

	first := image.CreationTimestamp
	if first.IsZero() {
		first = now
	}
	for i := range out {
		out[i].ObservedGeneration = generation
		out[i].LastTransitionTime = transitionTime(out[i], image, previous, first, now)
	}
	if dv := in.DataVolume; dv != nil && !sameObject(image, previous) && !dv.Ready.LastTransition.IsZero() {
		out[0].LastTransitionTime = dv.Ready.LastTransition
	}
	return out
}

// transitionTime keeps the time of a condition whose status stays. An object that was not published
// before has the golden's own time, so that a restart moves nothing.
func transitionTime(c metav1.Condition, image, previous *images.WorkerImage, first, now metav1.Time) metav1.Time {
	if !sameObject(image, previous) {
		return first
	}
	if before := meta.FindStatusCondition(previous.Status.Conditions, c.Type); before != nil && before.Status == c.Status {
		return before.LastTransitionTime
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

func (s Sources) unreadable(kinds ...string) []string {
	readable := map[string]bool{kindDataVolumes: s.DataVolumes, kindClaims: s.Claims, kindPools: s.Pools}
	return slices.DeleteFunc(kinds, func(k string) bool { return readable[k] })
}

func notReadable(kinds []string) string {
	return fmt.Sprintf("%s cannot be read from the cluster now.", strings.Join(kinds, " and "))
}
