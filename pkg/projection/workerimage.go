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
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// generation of every WorkerImage: its spec never changes.
const generation = 1

// WorkerImage returns the object that in amounts to, or nil where there is no golden of that name. The
// result shares nothing with in that anybody modifies.
//
// previous is the object published last, or nil; conditions whose status stays keep their transition time
// from it. now is the transition time of the others.
func WorkerImage(in Image, previous *images.WorkerImage, now metav1.Time) *images.WorkerImage {
	if !golden.Exists(in.DataVolume, in.Claim) {
		return nil
	}
	dv, claim := in.DataVolume, golden.OwnClaim(in.DataVolume, in.Claim)
	class := golden.ClassOf(dv, claim, in.Classes)
	if !in.Sources.StorageClasses {
		class.Problem = ""
		if class.FromDefault {
			class.Effective = ""
		}
	}
	state := stateOf(in, class)
	metadata := golden.MetadataOf(dv, claim)

	out := &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{
			Name:              in.ID.Name(),
			UID:               golden.UID(dv, claim),
			CreationTimestamp: created(dv, claim),
			Generation:        generation,
			Labels:            metadata.Labels,
			Annotations:       metadata.Annotations,
			ManagedFields:     metadata.ManagedFields,
		},
		Spec: images.WorkerImageSpec{SchematicID: in.ID.SchematicID, Version: in.ID.Version},
		Status: images.WorkerImageStatus{
			ObservedGeneration: generation,
			Phase:              state.Phase,
			Progress:           golden.Progress(dv),
			DataVolume:         dataVolumeStatus(dv),
			Claim:              claimStatus(claim),
			Source:             source(dv),
			Storage:            storage(dv, claim),
			StorageClass:       storageClass(class),
		},
	}
	if in.Sources.StorageProfiles {
		out.Status.CloneStrategy = in.Profiles.CloneStrategy(class.Effective)
	}
	out.Status.Catalog = catalogStatus(in)
	out.Status.Pools = allPools(in, goldenOf(class, state, out.Status))
	out.Status.PoolCount = int32(len(out.Status.Pools))
	out.Status.Conditions = conditions(in, state, out, previous, now)
	return out
}

// stateOf is the golden's state, or Unknown while the kinds that tell it cannot be read: a state that was
// read some time ago may be over.
func stateOf(in Image, class golden.Class) golden.State {
	if unreadable := in.Sources.unreadable(kindDataVolumes, kindClaims); len(unreadable) > 0 {
		return unknownState(unreadable)
	}
	state := golden.StateOf(in.DataVolume, in.Claim, class)
	state.Message = joinSentences(state.Message, remarks(in))
	return state
}

func unknownState(unreadable []string) golden.State {
	return golden.State{
		Phase:   images.WorkerImageUnknown,
		Ready:   metav1.ConditionUnknown,
		Reason:  ReasonSourceNotReadable,
		Message: notReadable(unreadable),
	}
}

// remarks are findings that do not change where a golden stands.
func remarks(in Image) string {
	dv := in.DataVolume
	if dv == nil {
		return "Its DataVolume is gone and only the claim is left."
	}
	var out []string
	if a := dv.Annotated.SchematicID; a != "" && a != in.ID.SchematicID {
		out = append(out, fmt.Sprintf("An annotation says schematic %q; the name counts.", a))
	}
	if a := dv.Annotated.Version; a != "" && a != in.ID.Version {
		out = append(out, fmt.Sprintf("An annotation says version %q; the name counts.", a))
	}
	if len(dv.Malformed) > 0 {
		out = append(out, fmt.Sprintf("Fields of the DataVolume that cannot be read: %s.", strings.Join(dv.Malformed, ", ")))
	}
	return strings.Join(out, " ")
}

func joinSentences(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

func created(dv *golden.DataVolume, claim *golden.Claim) metav1.Time {
	if dv != nil {
		return dv.Created
	}
	return claim.Created
}

func dataVolumeStatus(dv *golden.DataVolume) *images.DataVolumeStatus {
	if dv == nil {
		return nil
	}
	return &images.DataVolumeStatus{Namespace: dv.Namespace, Name: dv.Name, Phase: dv.Phase, RestartCount: dv.RestartCount}
}

func claimStatus(claim *golden.Claim) *images.ClaimStatus {
	if claim == nil {
		return nil
	}
	return &images.ClaimStatus{Name: claim.Name, Phase: claim.Phase}
}

func source(dv *golden.DataVolume) *images.ImageSource {
	if dv == nil || dv.URL == "" {
		return nil
	}
	return &images.ImageSource{URL: dv.URL}
}

func storage(dv *golden.DataVolume, claim *golden.Claim) *images.StorageStatus {
	out := images.StorageStatus{Requested: golden.Size(dv, claim)}
	if claim != nil {
		out.Capacity, out.AccessModes, out.VolumeMode = claim.Capacity, claim.AccessModes, claim.VolumeMode
	}
	if out.Requested == "" && out.Capacity == "" && len(out.AccessModes) == 0 && out.VolumeMode == "" {
		return nil
	}
	return &out
}

// catalogStatus is nil while the catalog cannot be read: an answer that was read some time ago may be over.
func catalogStatus(in Image) *images.CatalogStatus {
	if !in.Sources.Catalog {
		return nil
	}
	out := &images.CatalogStatus{Declared: in.Catalog.Present()}
	if in.Catalog.Entry != nil {
		out.Drift = in.Catalog.Entry.Drift(in.DataVolume)
	}
	return out
}

func storageClass(class golden.Class) *images.StorageClassStatus {
	if class.Declared == nil && class.Bound == nil && class.Effective == "" {
		return nil
	}
	return &images.StorageClassStatus{Declared: copyOf(class.Declared), Bound: copyOf(class.Bound), Effective: class.Effective}
}

func copyOf(s *string) *string {
	if s == nil {
		return nil
	}
	return ptr.To(*s)
}
