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
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MetadataAnnotation keeps what users set on a WorkerImage with its golden. It stands on the
	// DataVolume, or on the claim where only that is left. Labels and annotations of the golden itself
	// would not do: those of GitOps tools would get it pruned, and CDI's would change what it does.
	MetadataAnnotation = "images.cozystack.io/metadata"
	// MetadataLimit is how many bytes the annotation holds at the most. All annotations of an object
	// share 256 KiB.
	MetadataLimit = 64 << 10
)

// Metadata is what users set on a WorkerImage. It must not be modified once it is shared.
type Metadata struct {
	Labels        map[string]string           `json:"labels,omitempty"`
	Annotations   map[string]string           `json:"annotations,omitempty"`
	ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields,omitempty"`
}

// Encode returns the value of the annotation: the same for equal metadata, and empty where there is nothing
// to keep. The error says by how much the metadata is too large.
func (m Metadata) Encode() (string, error) {
	if len(m.Labels) == 0 && len(m.Annotations) == 0 && len(m.ManagedFields) == 0 {
		return "", nil
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode labels, annotations and managed fields: %w", err)
	}
	if len(encoded) > MetadataLimit {
		return "", fmt.Errorf("labels, annotations and managed fields take %d bytes together, and at most %d can be kept", len(encoded), MetadataLimit)
	}
	return string(encoded), nil
}

// MetadataOf returns what users set on the WorkerImage of a golden. What was set while there was a DataVolume
// went with it, unless CDI had put it on the claim.
func MetadataOf(dv *DataVolume, claim *Claim) Metadata {
	switch {
	case dv != nil:
		return dv.Metadata
	case claim != nil:
		return claim.Metadata
	}
	return Metadata{}
}

// metadataFrom reads the annotation. A golden whose annotation cannot be read has no metadata.
func metadataFrom(annotation string) (Metadata, error) {
	if annotation == "" {
		return Metadata{}, nil
	}
	if len(annotation) > MetadataLimit {
		return Metadata{}, fmt.Errorf("%d bytes are more than %d", len(annotation), MetadataLimit)
	}
	var m Metadata
	if err := json.Unmarshal([]byte(annotation), &m); err != nil {
		return Metadata{}, err
	}
	return m, nil
}
