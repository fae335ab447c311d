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

package snapshot

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	goldens    = "cozy-public"
	memoryOnly = "talos-worker-aaa-v1.13.6"
)

func dataVolume(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(dataVolumeKind)
	u.SetName(name)
	return u
}

func emptySnapshot() *Snapshot {
	return &Snapshot{dataVolumes: newSource(), claims: newSource()}
}

func TestWhatIsCreatedSaysThatNothingIsImported(t *testing.T) {
	s := emptySnapshot()
	made, err := s.DataVolumes(goldens).Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.GetNamespace() != goldens || made.GetUID() == "" || made.GetResourceVersion() == "" {
		t.Errorf("an API server would have filled in more: %v", made)
	}
	conditions, _, err := unstructured.NestedSlice(made.Object, "status", "conditions")
	if err != nil || len(conditions) != 1 {
		t.Errorf("conditions %v, %v", conditions, err)
	}
	if _, err := s.DataVolumes(goldens).Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second: %v", err)
	}
}

func TestAnUpdateNeedsTheVersionItWasMadeFor(t *testing.T) {
	client := emptySnapshot().DataVolumes(goldens)
	first, err := client.Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first.SetAnnotations(map[string]string{"a": "1"})
	second, err := client.Update(t.Context(), first, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if second.GetResourceVersion() == first.GetResourceVersion() {
		t.Error("a change did not move the version")
	}
	if _, err := client.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("on an old version: %v", err)
	}
	second.SetUID("another")
	if _, err := client.Update(t.Context(), second, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("on another object: %v", err)
	}
}

func TestADeletionNeedsItsPreconditions(t *testing.T) {
	client := emptySnapshot().DataVolumes(goldens)
	made, err := client.Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*metav1.Preconditions{
		"another uid":     {UID: ptr.To[types.UID]("another")},
		"another version": {ResourceVersion: ptr.To("0")},
	} {
		if err := client.Delete(t.Context(), memoryOnly, metav1.DeleteOptions{Preconditions: p}); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	right := &metav1.Preconditions{UID: ptr.To(made.GetUID()), ResourceVersion: ptr.To(made.GetResourceVersion())}
	if err := client.Delete(t.Context(), memoryOnly, metav1.DeleteOptions{Preconditions: right}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), memoryOnly, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestWhatIsNotThereCannotBeWritten(t *testing.T) {
	client := emptySnapshot().DataVolumes(goldens)
	if _, err := client.Update(t.Context(), dataVolume(memoryOnly), metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the update: %v", err)
	}
	if err := client.Delete(t.Context(), memoryOnly, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the deletion: %v", err)
	}
}

func TestAnObjectOfTheWrongTypeIsRefused(t *testing.T) {
	client := emptySnapshot().Claims(goldens)
	claim := &unstructured.Unstructured{Object: map[string]any{"spec": "of the wrong type"}}
	claim.SetGroupVersionKind(claimKind)
	claim.SetName(memoryOnly)
	if _, err := client.Create(t.Context(), claim, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Get(t.Context(), memoryOnly, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was refused is there: %v", err)
	}
}

func TestADryRunLeavesNothing(t *testing.T) {
	client := emptySnapshot().DataVolumes(goldens)
	all := []string{metav1.DryRunAll}
	if _, err := client.Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), memoryOnly, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run created: %v", err)
	}
	made, err := client.Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.SetAnnotations(map[string]string{"a": "1"})
	if _, err := client.Update(t.Context(), made, metav1.UpdateOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), memoryOnly, metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Fatal(err)
	}
	now, err := client.Get(t.Context(), memoryOnly, metav1.GetOptions{})
	if err != nil || len(now.GetAnnotations()) > 0 {
		t.Errorf("a dry run left %v, %v", now, err)
	}
}

func TestTheClaimGoesWithItsDataVolume(t *testing.T) {
	s := emptySnapshot()
	made, err := s.DataVolumes(goldens).Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]types.UID{memoryOnly: made.GetUID(), "another": "another"} {
		claim := &unstructured.Unstructured{Object: map[string]any{}}
		claim.SetGroupVersionKind(claimKind)
		claim.SetName(name)
		claim.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: name, UID: owner, Controller: ptr.To(true)}})
		if _, err := s.Claims(goldens).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DataVolumes(goldens).Delete(t.Context(), memoryOnly, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claims(goldens).Get(t.Context(), memoryOnly, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its claim: %v", err)
	}
	if _, err := s.Claims(goldens).Get(t.Context(), "another", metav1.GetOptions{}); err != nil {
		t.Errorf("another claim: %v", err)
	}
}

func TestWhatWasWrittenCountsForMoreThanAFile(t *testing.T) {
	s := emptySnapshot()
	client := s.DataVolumes(goldens)
	if _, err := client.Create(t.Context(), dataVolume(memoryOnly), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fromFile := dataVolume("from-file")
	fromFile.SetNamespace(goldens)
	content := map[types.NamespacedName]object{client.key("from-file"): fromFile}
	s.dataVolumes.replace(content)
	if _, err := client.Get(t.Context(), memoryOnly, metav1.GetOptions{}); err != nil {
		t.Errorf("what was created went when files were read again: %v", err)
	}
	if err := client.Delete(t.Context(), "from-file", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.dataVolumes.replace(content)
	if _, err := client.Get(t.Context(), "from-file", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted came back when files were read again: %v", err)
	}
}
