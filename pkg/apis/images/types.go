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

package images

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkerImage is a golden: a Talos OS image, imported once by CDI as a DataVolume, that worker VMs boot
// from clones of. There is one WorkerImage for each golden that exists, and its name is the golden's.
type WorkerImage struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   WorkerImageSpec
	Status WorkerImageStatus
}

// WorkerImageSpec is the identity of an image, and nothing else: where it comes from and where it is
// kept is for the catalog to say.
type WorkerImageSpec struct {
	SchematicID string
	Version     string
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
	ObservedGeneration int64
	Phase              WorkerImagePhase
	Progress           *int32
	DataVolume         *DataVolumeStatus
	Claim              *ClaimStatus
	Source             *ImageSource
	Storage            *StorageStatus
	StorageClass       *StorageClassStatus
	CloneStrategy      string
	Catalog            *CatalogStatus
	Pools              []PoolStatus
	PoolCount          int32
	Conditions         []metav1.Condition
}

// DataVolumeStatus is what CDI says about the DataVolume of a golden.
type DataVolumeStatus struct {
	Namespace    string
	Name         string
	Phase        string
	RestartCount int32
}

// ClaimStatus is the claim that holds an image.
type ClaimStatus struct {
	Name  string
	Phase corev1.PersistentVolumeClaimPhase
}

// ImageSource is where an image is imported from.
type ImageSource struct {
	URL string
}

// StorageStatus is the size and the shape of an image's volume. Sizes are quantities as they were
// written.
type StorageStatus struct {
	Requested   string
	Capacity    string
	AccessModes []corev1.PersistentVolumeAccessMode
	VolumeMode  corev1.PersistentVolumeMode
}

// StorageClassStatus tells the StorageClass that was asked for from the one in effect.
type StorageClassStatus struct {
	Declared  *string
	Bound     *string
	Effective string
}

// CatalogStatus compares an image with the catalog's entry for it.
type CatalogStatus struct {
	Declared bool
	Drift    []CatalogDrift
}

// CatalogDrift is one field in which an image differs from its catalog entry.
type CatalogDrift struct {
	Field   string
	Catalog string
	Live    string
}

// PoolStatus is a node pool that consumes an image.
type PoolStatus struct {
	Namespace         string
	Name              string
	Cluster           string
	MinReplicas       *int32
	MaxReplicas       *int32
	KubernetesVersion string
	DiskSize          string
	StorageClass      *PoolStorageClass
	Disks             DiskCounts
	Cloneable         metav1.ConditionStatus
	Reason            string
	Message           string
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
	Name string
	From PoolStorageClassSource
}

// DiskCounts counts worker disks by how far their clone is.
type DiskCounts struct {
	Cloned  int32
	Cloning int32
	Failed  int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkerImageList is a list of WorkerImages.
type WorkerImageList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []WorkerImage
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogEntry is an image that could be: one that the operator's catalog declares, or one that a pool
// asks for. It has the name that its golden has.
type CatalogEntry struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   CatalogEntrySpec
	Status CatalogEntryStatus
}

// CatalogEntrySpec is an image as it would be made, with the catalog's defaults filled in.
type CatalogEntrySpec struct {
	SchematicID      string
	Version          string
	ImageFactoryURL  string
	Storage          string
	StorageClassName string
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
	Declared     bool
	Materialized bool
	Phase        CatalogEntryPhase
	Pools        []PoolStatus
	PoolCount    int32
	Conditions   []metav1.Condition
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogEntryList is a list of CatalogEntries.
type CatalogEntryList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []CatalogEntry
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Option is a list of choices for a form field that names it as its source.
type Option struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec OptionSpec
}

// OptionSpec holds the choices, the most suitable first.
type OptionSpec struct {
	Items []OptionItem
}

// OptionItem is one choice.
type OptionItem struct {
	Value       string
	Label       string
	Description string
	Default     bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// OptionList is a list of Options.
type OptionList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Option
}
