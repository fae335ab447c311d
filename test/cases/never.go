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

package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

const (
	// hiddenKey and hiddenValue are those of an annotation that no answer may show.
	hiddenKey   = "cdi.kubevirt.io/storage.clone.token"
	hiddenValue = "not-a-real-token-7f3a"

	createdForAnnotation = "cdi.kubevirt.io/createdForDataVolume"
)

// rule is something that holds after every event. A check returns what breaks it; one that is nil has
// nothing to say.
type rule struct {
	id string
	// image checks an object that is there now.
	image func(*v1alpha1.WorkerImage) []string
	// event checks an event against the object that was there before; nil if there was none.
	event func(kind watch.EventType, before, after *v1alpha1.WorkerImage) []string
	// end checks the inputs when the case is over.
	end func() []string
}

// rules returns every rule that a case can name. Those that remember something remember it from then on.
func rules(c *Case, in *Inputs) []rule {
	return []rule{
		{id: "ready-needs-its-own-bound-claim", image: func(image *v1alpha1.WorkerImage) []string {
			return readyNeedsItsOwnBoundClaim(in, image)
		}},
		{id: "ready-and-phase-agree", image: readyAndPhaseAgree},
		{id: "failed-only-if-so", image: func(image *v1alpha1.WorkerImage) []string { return failedOnlyIfSo(in, image) }},
		{id: "only-goldens-are-listed", image: func(image *v1alpha1.WorkerImage) []string {
			return onlyGoldensAreListed(c, image)
		}},
		{id: "progress-in-range", image: func(image *v1alpha1.WorkerImage) []string { return progressInRange(in, image) }},
		{id: "identity-from-the-name", image: func(image *v1alpha1.WorkerImage) []string {
			return identityFromTheName(c, image)
		}},
		{id: "uid-follows-the-golden", image: uidFollowsTheGolden(in)},
		{id: "no-token", image: noToken},
		{id: "one-event-per-visible-change", event: oneEventPerVisibleChange},
		{id: "inputs-untouched", end: func() []string { return in.modified() }},
	}
}

func readyNeedsItsOwnBoundClaim(in *Inputs, image *v1alpha1.WorkerImage) []string {
	if !isReady(image) {
		return nil
	}
	usable := func(dv, claim *unstructured.Unstructured) bool {
		if claim == nil || phaseOf(claim) != string(corev1.ClaimBound) || claim.GetDeletionTimestamp() != nil {
			return false
		}
		return dv == nil || phaseOf(dv) == string(cdiv1.Succeeded) && dv.GetDeletionTimestamp() == nil && !ownedByAnother(claim, dv)
	}
	if !anyState(in, image.Name, usable) {
		return []string{"Ready without a complete DataVolume and a bound claim of its own"}
	}
	return nil
}

func readyAndPhaseAgree(image *v1alpha1.WorkerImage) []string {
	if isReady(image) != (image.Status.Phase == v1alpha1.WorkerImageReady) {
		return []string{fmt.Sprintf("phase %s, condition Ready %s",
			image.Status.Phase, conditionOf(image.Status.Conditions, v1alpha1.ConditionReady).Status)}
	}
	return nil
}

func failedOnlyIfSo(in *Inputs, image *v1alpha1.WorkerImage) []string {
	if image.Status.Phase != v1alpha1.WorkerImageFailed {
		return nil
	}
	failed := func(dv, claim *unstructured.Unstructured) bool {
		switch phaseOf(dv) {
		case string(cdiv1.Failed):
			return true
		case string(cdiv1.Succeeded):
			return claim == nil || phaseOf(claim) == string(corev1.ClaimLost)
		}
		return false
	}
	if !anyState(in, image.Name, failed) {
		return []string{"Failed though CDI does not say so and the claim is not lost"}
	}
	return nil
}

func onlyGoldensAreListed(c *Case, image *v1alpha1.WorkerImage) []string {
	if c.golden(image.Name) == nil || image.Namespace != "" {
		return []string{fmt.Sprintf("%q in namespace %q is not a golden", image.Name, image.Namespace)}
	}
	return nil
}

func progressInRange(in *Inputs, image *v1alpha1.WorkerImage) []string {
	progress := image.Status.Progress
	if progress == nil {
		return nil
	}
	if *progress < 0 || *progress > 100 {
		return []string{fmt.Sprintf("progress %d", *progress)}
	}
	complete := func(dv, _ *unstructured.Unstructured) bool {
		return dv == nil || phaseOf(dv) == string(cdiv1.Succeeded) || percentOf(dv) >= 99.5
	}
	if *progress == 100 && !anyState(in, image.Name, complete) {
		return []string{"progress 100 before CDI says so"}
	}
	return nil
}

func identityFromTheName(c *Case, image *v1alpha1.WorkerImage) []string {
	want := c.golden(image.Name)
	got := image.Spec
	if want != nil && (got.SchematicID != want.SchematicID || got.Version != want.Version) {
		return []string{fmt.Sprintf("%s is (%s, %s)", image.Name, got.SchematicID, got.Version)}
	}
	return nil
}

// uidFollowsTheGolden remembers which golden each uid stands for.
func uidFollowsTheGolden(in *Inputs) func(*v1alpha1.WorkerImage) []string {
	served := map[types.UID]types.UID{}
	golden := map[types.UID]types.UID{}
	return func(image *v1alpha1.WorkerImage) []string {
		if image.UID == "" || in.HasUID(image.UID) {
			return []string{fmt.Sprintf("uid %q is empty or an input's", image.UID)}
		}
		candidates := goldenUIDs(in, image.Name)
		if known, ok := golden[image.UID]; ok {
			if !slices.Contains(candidates, known) {
				return []string{fmt.Sprintf("uid %s stands for golden %s, which is gone", image.UID, known)}
			}
			return nil
		}
		candidates = slices.DeleteFunc(candidates, func(uid types.UID) bool { return served[uid] != "" })
		switch len(candidates) {
		case 0:
			return []string{fmt.Sprintf("uid %s is new, and the golden is not", image.UID)}
		case 1:
			golden[image.UID], served[candidates[0]] = candidates[0], image.UID
		}
		return nil
	}
}

func noToken(image *v1alpha1.WorkerImage) []string {
	answer, err := json.Marshal(image)
	if err != nil {
		return []string{err.Error()}
	}
	return TokensIn(answer)
}

// TokensIn returns a finding for the token that an answer shows, and for the annotation that holds it.
func TokensIn(answer []byte) []string {
	var found []string
	for _, hidden := range []string{hiddenKey, hiddenValue} {
		if bytes.Contains(answer, []byte(hidden)) {
			found = append(found, fmt.Sprintf("an answer shows %s", hidden))
		}
	}
	return found
}

func oneEventPerVisibleChange(kind watch.EventType, before, after *v1alpha1.WorkerImage) []string {
	if (kind == watch.Added) != (before == nil) {
		return []string{fmt.Sprintf("%s is %s while it is there: %t", after.Name, kind, before != nil)}
	}
	if kind != watch.Modified {
		return nil
	}
	if before.UID != after.UID {
		return []string{fmt.Sprintf("%s is another object, and not a change of the one before", after.Name)}
	}
	if before.ResourceVersion == after.ResourceVersion {
		return []string{fmt.Sprintf("%s has resourceVersion %s twice", after.Name, after.ResourceVersion)}
	}
	if equality.Semantic.DeepEqual(content(before), content(after)) {
		return []string{fmt.Sprintf("nothing of %s changed at resourceVersion %s", after.Name, after.ResourceVersion)}
	}
	return nil
}

func (c *Case) golden(name string) *Golden {
	for i := range c.Want.Goldens {
		if c.Want.Goldens[i].Name == name {
			return &c.Want.Goldens[i]
		}
	}
	return nil
}

// anyState is true if holds is for any states that the golden's DataVolume and claim may be read in.
func anyState(in *Inputs, name string, holds func(dv, claim *unstructured.Unstructured) bool) bool {
	for _, dv := range in.States(Key{"DataVolume", GoldensNamespace, name}) {
		for _, claim := range in.States(Key{"PersistentVolumeClaim", GoldensNamespace, claimName(dv, name)}) {
			if holds(dv, claim) {
				return true
			}
		}
	}
	return false
}

func claimName(dv *unstructured.Unstructured, golden string) string {
	if dv == nil {
		return golden
	}
	if name, _, _ := unstructured.NestedString(dv.Object, "status", "claimName"); name != "" {
		return name
	}
	return golden
}

// goldenUIDs are those of the goldens that an image of that name may be made from. A bare claim stands for
// the DataVolume that it was made for.
func goldenUIDs(in *Inputs, name string) []types.UID {
	var out []types.UID
	anyState(in, name, func(dv, claim *unstructured.Unstructured) bool {
		switch {
		case dv != nil:
			out = append(out, dv.GetUID())
		case claim != nil && claim.GetAnnotations()[createdForAnnotation] != "":
			out = append(out, types.UID(claim.GetAnnotations()[createdForAnnotation]))
		case claim != nil:
			out = append(out, claim.GetUID())
		}
		return false
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// ownedByAnother is true if a DataVolume of another uid controls the claim.
func ownedByAnother(claim, dv *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(claim)
	return owner != nil && owner.Kind == "DataVolume" && owner.UID != dv.GetUID()
}

func isReady(image *v1alpha1.WorkerImage) bool {
	return meta.IsStatusConditionTrue(image.Status.Conditions, v1alpha1.ConditionReady)
}

// phaseOf returns nothing for an object that is nil or has none.
func phaseOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase
}

// percentOf returns a negative number where CDI says none.
func percentOf(dv *unstructured.Unstructured) float64 {
	progress, _, _ := unstructured.NestedString(dv.Object, "status", "progress")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(progress, "%"), 64)
	if err != nil {
		return -1
	}
	return percent
}

// content leaves out what moves only when something else does.
func content(image *v1alpha1.WorkerImage) *v1alpha1.WorkerImage {
	out := image.DeepCopy()
	out.ResourceVersion = ""
	for i := range out.Status.Conditions {
		out.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return out
}
