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
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	cdicore "kubevirt.io/containerized-data-importer-api/pkg/apis/core"

	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	populatedForAnnotation = "cdi.kubevirt.io/storage.populatedFor"
	podPhaseAnnotation     = "cdi.kubevirt.io/storage.pod.phase"
	createdForAnnotation   = "cdi.kubevirt.io/createdForDataVolume"
)

// ClaimFrom reads a PersistentVolumeClaim. It keeps the annotation that holds what users set, and no other, for
// some hold tokens.
func ClaimFrom(pvc *corev1.PersistentVolumeClaim) *Claim {
	claim := &Claim{
		Namespace:    pvc.Namespace,
		Name:         pvc.Name,
		UID:          pvc.UID,
		Created:      pvc.CreationTimestamp,
		Deleting:     pvc.DeletionTimestamp != nil,
		Phase:        pvc.Status.Phase,
		StorageClass: classOfClaim(pvc),
		Requested:    storageIn(pvc.Spec.Resources.Requests),
		Capacity:     storageIn(pvc.Status.Capacity),
		AccessModes:  slices.Clone(pvc.Spec.AccessModes),
		Owner:        controllingDataVolume(pvc),
		CreatedFor:   types.UID(freeform.Clip(pvc.Annotations[createdForAnnotation], wordLimit)),
	}
	if pvc.Spec.VolumeMode != nil {
		claim.VolumeMode = *pvc.Spec.VolumeMode
	}
	claim.Metadata, _ = metadataFrom(pvc.Annotations[MetadataAnnotation]) // one that cannot be read counts as none
	_, populated := pvc.Annotations[populatedForAnnotation]
	claim.Populated = populated || pvc.Annotations[podPhaseAnnotation] == string(corev1.PodSucceeded)
	return claim
}

// classOfClaim lets the legacy annotation win, as Kubernetes does.
func classOfClaim(pvc *corev1.PersistentVolumeClaim) *string {
	if class, ok := pvc.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = freeform.Clip(class, nameLimit)
		return &class
	}
	return pvc.Spec.StorageClassName
}

func storageIn(list corev1.ResourceList) string {
	quantity, ok := list[corev1.ResourceStorage]
	if !ok {
		return ""
	}
	return quantity.String()
}

func controllingDataVolume(pvc *corev1.PersistentVolumeClaim) types.UID {
	owner := metav1.GetControllerOfNoCopy(pvc)
	if owner == nil || owner.Kind != "DataVolume" {
		return ""
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != cdicore.GroupName {
		return ""
	}
	return owner.UID
}

// Claim returns the name of the claim that the DataVolume fills.
func (dv *DataVolume) Claim() string {
	if dv.ClaimName != "" {
		return dv.ClaimName
	}
	return dv.Name
}

// OwnClaim returns claim if it is the one behind the golden, and nil if it is another's. A claim that
// nobody controls is about to be adopted. Without a DataVolume there is nobody else it could belong to.
func OwnClaim(dv *DataVolume, claim *Claim) *Claim {
	switch {
	case dv == nil || claim == nil:
		return claim
	case claim.Namespace != dv.Namespace || claim.Name != dv.Claim():
		return nil
	case claim.Owner != "" && claim.Owner != dv.UID:
		return nil
	}
	return claim
}
