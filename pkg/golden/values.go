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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// ID is the identity of a golden: the pair that its name is made of.
type ID struct {
	SchematicID string
	Version     string
}

// Template is the part of a DataVolume's spec that describes its claim. It decides who resolves a class
// that is not given.
type Template string

const (
	// TemplateStorage is spec.storage: CDI fills in what is missing, the class too.
	TemplateStorage Template = "storage"
	// TemplatePVC is spec.pvc: the claim is copied verbatim, and Kubernetes fills in the class.
	TemplatePVC Template = "pvc"
	// TemplateNone is a spec with neither.
	TemplateNone Template = ""
)

// DataVolume is what the rules read of the DataVolume of a golden. It must not be modified once it is
// shared.
type DataVolume struct {
	Namespace string
	Name      string
	UID       types.UID
	Created   metav1.Time
	Deleting  bool

	// Metadata is what users set on the WorkerImage.
	Metadata Metadata
	// Annotated is the identity that the annotations state; its fields are empty where they are silent.
	Annotated ID
	// URL of the HTTP source without credentials and query values; empty for any other source.
	URL         string
	Template    Template
	ContentType string
	// StorageClass is what the spec says: nil where it is silent, empty where it asks for no class at all.
	StorageClass *string
	// Size is the requested size as it was written; empty where the spec is silent.
	Size string

	ClaimName string
	// Phase is CDI's own word; empty while CDI has not said anything.
	Phase        string
	Progress     string
	RestartCount int32
	Ready        Condition
	Bound        Condition
	Running      Condition

	// Malformed lists the paths of the fields that hold something other than what the schema says. Such
	// fields count as absent, except for a phase, which counts as Unknown.
	Malformed []string
}

// Condition is a condition of a DataVolume. Its message holds no credentials.
type Condition struct {
	Status         string
	Reason         string
	Message        string
	LastTransition metav1.Time
}

// Claim is what the rules read of a PersistentVolumeClaim in the namespace of the goldens. It must not be
// modified once it is shared.
type Claim struct {
	Namespace string
	Name      string
	UID       types.UID
	Created   metav1.Time
	Deleting  bool

	// Metadata is what users set on the WorkerImage when only the claim was left.
	Metadata Metadata

	Phase corev1.PersistentVolumeClaimPhase
	// StorageClass is what the claim says, in its spec or in the legacy annotation: nil where it is
	// silent, empty where it asks for no class at all.
	StorageClass *string
	// Requested and Capacity are quantities in their canonical form; empty where they are absent.
	Requested   string
	Capacity    string
	AccessModes []corev1.PersistentVolumeAccessMode
	VolumeMode  corev1.PersistentVolumeMode

	// Owner is the uid of the DataVolume that controls the claim; empty where none does.
	Owner types.UID
	// CreatedFor is the uid of the DataVolume that CDI says it made the claim for.
	CreatedFor types.UID
	// Populated is true when CDI left on the claim that it filled it.
	Populated bool
}

// State is where a golden stands.
type State struct {
	Phase images.WorkerImagePhase
	// Ready, Reason and Message are the condition Ready.
	Ready   metav1.ConditionStatus
	Reason  string
	Message string
	// Failing is true for a golden that is not complete and whose import has been restarted three times or more.
	Failing bool
}
