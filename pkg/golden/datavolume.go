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
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	// SchematicIDAnnotation states the schematic of a golden on its DataVolume.
	SchematicIDAnnotation = "kubernetes-worker-image.cozystack.io/schematic-id"
	// TalosVersionAnnotation states the version.
	TalosVersionAnnotation = "kubernetes-worker-image.cozystack.io/talos-version"
)

const (
	// nameLimit is the longest name of an object.
	nameLimit = 253
	// wordLimit bounds phases, reasons, quantities and other short words.
	wordLimit = 128
	// noLimit is for text that is redacted before it is cut: a cut could go through what is to be redacted.
	noLimit = math.MaxInt
)

// DataVolumeFrom reads a DataVolume. It keeps the two annotations that state the identity and the one that holds
// what users set, and no other, for some hold tokens.
func DataVolumeFrom(object map[string]any) *DataVolume {
	dv := &DataVolume{}
	root := freeform.Recording(object, &dv.Malformed)
	dv.readMetadata(root.Object("metadata"))
	dv.readSpec(root.Object("spec"))
	dv.readStatus(root.Object("status"))
	return dv
}

func (dv *DataVolume) readMetadata(metadata freeform.Object) {
	dv.Namespace = metadata.Text("namespace", nameLimit)
	dv.Name = metadata.Text("name", nameLimit)
	dv.UID = types.UID(metadata.Text("uid", wordLimit))
	dv.Created = metav1.NewTime(metadata.Time("creationTimestamp"))
	dv.Deleting = metadata.Has("deletionTimestamp")
	annotations := metadata.Object("annotations")
	var err error
	if dv.Metadata, err = metadataFrom(annotations.Text(MetadataAnnotation, noLimit)); err != nil {
		dv.Malformed = append(dv.Malformed, "metadata.annotations["+MetadataAnnotation+"]")
	}
	dv.Annotated = ID{
		SchematicID: annotations.Text(SchematicIDAnnotation, nameLimit),
		Version:     annotations.Text(TalosVersionAnnotation, nameLimit),
	}
}

func (dv *DataVolume) readSpec(spec freeform.Object) {
	dv.URL = RedactURL(spec.Object("source").Object("http").Text("url", noLimit))
	dv.ContentType = spec.Text("contentType", wordLimit)

	template := spec.Object("storage")
	if template.Exists() {
		dv.Template = TemplateStorage
	} else if template = spec.Object("pvc"); template.Exists() {
		dv.Template = TemplatePVC
	}
	dv.StorageClass = template.OptionalText("storageClassName", nameLimit)
	dv.Size = template.Object("resources").Object("requests").Written("storage", wordLimit)
}

func (dv *DataVolume) readStatus(status freeform.Object) {
	dv.ClaimName = status.Text("claimName", nameLimit)
	if phase := status.OptionalText("phase", wordLimit); phase != nil {
		dv.Phase = *phase
	} else if status.Has("phase") {
		dv.Phase = string(cdiv1.Unknown)
	}
	dv.Progress = status.Text("progress", wordLimit)
	if restarts := status.Int32("restartCount"); restarts != nil {
		dv.RestartCount = max(*restarts, 0)
	}
	for _, condition := range status.Objects("conditions") {
		switch cdiv1.DataVolumeConditionType(condition.Text("type", wordLimit)) {
		case cdiv1.DataVolumeReady:
			dv.Ready = conditionFrom(condition)
		case cdiv1.DataVolumeBound:
			dv.Bound = conditionFrom(condition)
		case cdiv1.DataVolumeRunning:
			dv.Running = conditionFrom(condition)
		}
	}
}

func conditionFrom(condition freeform.Object) Condition {
	return Condition{
		Status:         condition.Text("status", wordLimit),
		Reason:         condition.Text("reason", wordLimit),
		Message:        RedactMessage(condition.Text("message", noLimit)),
		LastTransition: metav1.NewTime(condition.Time("lastTransitionTime")),
	}
}
