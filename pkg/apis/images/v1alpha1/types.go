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

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkerImage is a golden: a Talos OS image, imported once by CDI as a DataVolume, that worker VMs boot
// from clones of. There is one WorkerImage for each golden that exists, and its name is the golden's.
type WorkerImage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the identity of the image. It never changes: another image is another WorkerImage.
	Spec WorkerImageSpec `json:"spec"`
	// status is what the cluster says about the image now.
	// +optional
	Status WorkerImageStatus `json:"status,omitempty"`
}

// WorkerImageSpec is the identity of an image, and nothing else: where it comes from and where it is
// kept is for the catalog to say.
type WorkerImageSpec struct {
	// schematicID is the id of the Image Factory schematic, or the name a mirror gives it. It consists of
	// lower-case letters, digits and dashes.
	SchematicID string `json:"schematicID"`
	// version is the full Talos release, such as v1.13.6 or v1.14.0-alpha.1.
	Version string `json:"version"`
}

// WorkerImagePhase is where a golden stands. Clients must accept values they do not know.
type WorkerImagePhase string

const (
	// WorkerImagePending means that no data has been transferred yet: the import waits for a claim, a
	// class, a consumer or its turn.
	WorkerImagePending WorkerImagePhase = "Pending"
	// WorkerImageImporting means that the transfer has begun, and may be between two tries.
	WorkerImageImporting WorkerImagePhase = "Importing"
	// WorkerImageReady means that the image is complete and can be cloned.
	WorkerImageReady WorkerImagePhase = "Ready"
	// WorkerImageFailed means that the image will not become usable by itself.
	WorkerImageFailed WorkerImagePhase = "Failed"
	// WorkerImageTerminating means that the DataVolume or its claim is being deleted.
	WorkerImageTerminating WorkerImagePhase = "Terminating"
	// WorkerImageUnknown means that the cluster cannot be asked now, or answered with something unknown.
	WorkerImageUnknown WorkerImagePhase = "Unknown"
)

const (
	// ConditionReady is True exactly when the phase is Ready.
	ConditionReady = "Ready"
	// ConditionInUse is True while any pool declares the image or any DataVolume is being cloned from
	// it, whether or not the caller may see which.
	ConditionInUse = "InUse"
	// ConditionDeletable is the answer that a delete would get.
	ConditionDeletable = "Deletable"
	// ConditionCatalogSynced is True while the catalog declares the image as it is.
	ConditionCatalogSynced = "CatalogSynced"
	// ConditionStalled is True while the image will not become ready unless somebody acts, and absent
	// otherwise. Tools that wait with kstatus stop waiting then.
	ConditionStalled = "Stalled"
)

// WorkerImageStatus is what the cluster says about a golden.
type WorkerImageStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is where the golden stands: Pending, Importing, Ready, Failed, Terminating or Unknown. Clients
	// must accept other values.
	// +optional
	Phase WorkerImagePhase `json:"phase,omitempty"`
	// progress of the transfer in whole percent, rounded down. It is absent while it is not known, and may
	// fall when an import starts over.
	// +optional
	Progress *int32 `json:"progress,omitempty"`
	// dataVolume is the CDI DataVolume that is the golden. It is absent when only the claim is left.
	// +optional
	DataVolume *DataVolumeStatus `json:"dataVolume,omitempty"`
	// claim is the PersistentVolumeClaim that holds the image, in the namespace of the goldens.
	// +optional
	Claim *ClaimStatus `json:"claim,omitempty"`
	// source is where the image was imported from.
	// +optional
	Source *ImageSource `json:"source,omitempty"`
	// storage is the size and the shape of the image's volume.
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`
	// storageClass tells the class that was asked for from the one the image sits on.
	// +optional
	StorageClass *StorageClassStatus `json:"storageClass,omitempty"`
	// cloneStrategy is what CDI does for a clone within the image's class: csi-clone, snapshot or copy.
	// It is absent while it is not known.
	// +optional
	CloneStrategy string `json:"cloneStrategy,omitempty"`
	// catalog compares the image with the entry that the operator's catalog has for it. It is absent while
	// the catalog cannot be read.
	// +optional
	Catalog *CatalogStatus `json:"catalog,omitempty"`
	// pools are the node pools that consume the image, as far as the caller may see them, by namespace
	// and name.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Pools []PoolStatus `json:"pools,omitempty"`
	// poolCount is the number of pools listed.
	PoolCount int32 `json:"poolCount"`
	// conditions of the image: Ready, InUse, Deletable and CatalogSynced, and Stalled while the image will
	// not become ready unless somebody acts.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// DataVolumeStatus is what CDI says about the DataVolume of a golden.
type DataVolumeStatus struct {
	// namespace of the DataVolume.
	Namespace string `json:"namespace"`
	// name of the DataVolume.
	Name string `json:"name"`
	// phase in CDI's own word. It is empty while CDI has not said anything.
	// +optional
	Phase string `json:"phase,omitempty"`
	// restartCount is how often the importer has been restarted.
	RestartCount int32 `json:"restartCount"`
}

// ClaimStatus is the claim that holds an image.
type ClaimStatus struct {
	// name of the PersistentVolumeClaim.
	Name string `json:"name"`
	// phase of the claim: Pending, Bound or Lost.
	// +optional
	Phase corev1.PersistentVolumeClaimPhase `json:"phase,omitempty"`
}

// ImageSource is where an image is imported from.
type ImageSource struct {
	// url of the image. Credentials and query values are left out.
	// +optional
	URL string `json:"url,omitempty"`
}

// StorageStatus is the size and the shape of an image's volume. Sizes are quantities as they were
// written.
type StorageStatus struct {
	// requested is the size that the DataVolume asks for, or the claim where the DataVolume is silent.
	// +optional
	Requested string `json:"requested,omitempty"`
	// capacity is the size of the bound volume.
	// +optional
	Capacity string `json:"capacity,omitempty"`
	// accessModes of the claim.
	// +optional
	// +listType=atomic
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// volumeMode of the claim: Block or Filesystem.
	// +optional
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
}

// StorageClassStatus tells the StorageClass that was asked for from the one in effect.
type StorageClassStatus struct {
	// declared is what the DataVolume's spec says. It is absent where the spec says nothing, and empty
	// where the spec asks for no class at all.
	// +optional
	Declared *string `json:"declared,omitempty"`
	// bound is what the claim says.
	// +optional
	Bound *string `json:"bound,omitempty"`
	// effective is the class that clones are compared with: the declared one, else the bound one, else
	// the one that is predicted while there is no claim.
	// +optional
	Effective string `json:"effective,omitempty"`
}

// CatalogStatus compares an image with the catalog's entry for it.
type CatalogStatus struct {
	// declared is true when the catalog has an entry for the image.
	Declared bool `json:"declared"`
	// drift lists the fields in which the image differs from its entry.
	// +optional
	// +listType=map
	// +listMapKey=field
	Drift []CatalogDrift `json:"drift,omitempty"`
}

// CatalogDrift is one field in which an image differs from its catalog entry.
type CatalogDrift struct {
	// field of the catalog entry: imageFactoryURL, storage or storageClass.
	Field string `json:"field"`
	// catalog is the value that the catalog declares.
	Catalog string `json:"catalog"`
	// live is the value that the image has.
	Live string `json:"live"`
}

// PoolStatus is a node pool that consumes an image.
type PoolStatus struct {
	// namespace of the KubernetesNodes object.
	Namespace string `json:"namespace"`
	// name of the KubernetesNodes object. For disks whose pool has no object, the name that the disks give.
	Name string `json:"name"`
	// cluster that the pool belongs to.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// minReplicas that the pool declares. A pool at zero still consumes its image.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// maxReplicas that the pool declares.
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
	// kubernetesVersion that the pool declares, such as v1.35.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// diskSize of a worker, as it was written.
	// +optional
	DiskSize string `json:"diskSize,omitempty"`
	// storageClass that the pool's next worker disk is made with.
	// +optional
	StorageClass *PoolStorageClass `json:"storageClass,omitempty"`
	// disks counts the pool's worker disks that are clones of this image.
	Disks DiskCounts `json:"disks"`
	// cloneable answers whether the pool's next worker can be cloned on the storage layer: True, False or
	// Unknown.
	Cloneable metav1.ConditionStatus `json:"cloneable"`
	// reason for the answer, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message tells what is wrong and what can be done. It is present whenever cloneable is not True.
	// +optional
	Message string `json:"message,omitempty"`
}

// PoolStorageClassSource is what the class of a pool was learned from.
type PoolStorageClassSource string

const (
	// StorageClassDeclared means that the pool names its class.
	StorageClassDeclared PoolStorageClassSource = "Declared"
	// StorageClassClonedDisk means that the pool names none and keeps the class of the disks it cloned.
	StorageClassClonedDisk PoolStorageClassSource = "ClonedDisk"
	// StorageClassDefault means that the pool names none and gets today's default.
	StorageClassDefault PoolStorageClassSource = "Default"
)

// PoolStorageClass is the class that a pool's next worker disk is made with.
type PoolStorageClass struct {
	// name of the StorageClass. It is empty when no class could be determined.
	// +optional
	Name string `json:"name,omitempty"`
	// from tells how the name was determined: Declared, ClonedDisk or Default.
	From PoolStorageClassSource `json:"from"`
}

// DiskCounts counts worker disks by how far their clone is.
type DiskCounts struct {
	// cloned disks are complete, and independent of the image.
	Cloned int32 `json:"cloned"`
	// cloning disks are in any phase before Succeeded.
	Cloning int32 `json:"cloning"`
	// failed disks have failed, or wait for something that will not pass by itself.
	Failed int32 `json:"failed"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkerImageList is a list of WorkerImages.
type WorkerImageList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WorkerImage `json:"items"`
}

// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +genclient:onlyVerbs=get,list,watch
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogEntry is an image that could be: one that the operator's catalog declares, or one that a pool
// asks for. It has the name that its golden has.
type CatalogEntry struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the image as it would be made.
	Spec CatalogEntrySpec `json:"spec"`
	// status compares the catalog with the cluster.
	// +optional
	Status CatalogEntryStatus `json:"status,omitempty"`
}

// CatalogEntrySpec is an image as it would be made, with the catalog's defaults filled in.
type CatalogEntrySpec struct {
	// schematicID of the image.
	SchematicID string `json:"schematicID"`
	// version is the full Talos release.
	Version string `json:"version"`
	// imageFactoryURL is the factory or mirror that the image is imported from, without a trailing slash.
	// +optional
	ImageFactoryURL string `json:"imageFactoryURL,omitempty"`
	// storage is the size that is asked for, as it was written.
	// +optional
	Storage string `json:"storage,omitempty"`
	// storageClassName is the class that is asked for. It is empty for the cluster's default.
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}

// CatalogEntryPhase is where a catalog entry stands. Clients must accept values they do not know.
type CatalogEntryPhase string

const (
	// CatalogEntryAvailable means that the entry is declared and its image has not been made.
	CatalogEntryAvailable CatalogEntryPhase = "Available"
	// CatalogEntryMissing means that a pool asks for the image and it is not there.
	CatalogEntryMissing CatalogEntryPhase = "Missing"
	// CatalogEntryInvalid means that the entry cannot be used; a condition says why.
	CatalogEntryInvalid CatalogEntryPhase = "Invalid"
)

const (
	// ConditionValid is True while the catalog's entry is in force.
	ConditionValid = "Valid"
	// ConditionMaterialized is True while the image exists as a WorkerImage.
	ConditionMaterialized = "Materialized"
)

// CatalogEntryStatus compares an entry with the cluster.
type CatalogEntryStatus struct {
	// declared is true when the catalog has the entry.
	Declared bool `json:"declared"`
	// materialized is true when the image exists as a WorkerImage.
	Materialized bool `json:"materialized"`
	// phase is the phase of the WorkerImage, or Available, Missing or Invalid.
	// +optional
	Phase CatalogEntryPhase `json:"phase,omitempty"`
	// pools are the node pools that ask for the image, as far as the caller may see them.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Pools []PoolStatus `json:"pools,omitempty"`
	// poolCount is the number of pools listed.
	PoolCount int32 `json:"poolCount"`
	// conditions of the entry.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogEntryList is a list of CatalogEntries.
type CatalogEntryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CatalogEntry `json:"items"`
}

// +genclient
// +genclient:onlyVerbs=get,list,watch
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Option is a list of choices for a form field that names it as its source.
type Option struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the choices.
	Spec OptionSpec `json:"spec"`
}

// OptionSpec holds the choices, the most suitable first.
type OptionSpec struct {
	// items are the choices.
	// +listType=atomic
	Items []OptionItem `json:"items"`
}

// OptionItem is one choice.
type OptionItem struct {
	// value is what is written into the field.
	Value string `json:"value"`
	// label is what is shown; the value where it is absent.
	// +optional
	Label string `json:"label,omitempty"`
	// description is shown as a tooltip.
	// +optional
	Description string `json:"description,omitempty"`
	// default is true for the choice that is preselected.
	// +optional
	Default bool `json:"default,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OptionList is a list of Options.
type OptionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Option `json:"items"`
}
