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
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// WorkerImageSelectableFields are the fields that a field selector on WorkerImages may name.
var WorkerImageSelectableFields = []string{
	"metadata.name",
	"spec.schematicID",
	"spec.version",
	"status.phase",
	"status.storageClass.effective",
}

// CatalogEntrySelectableFields are the fields that a field selector on CatalogEntries may name.
var CatalogEntrySelectableFields = []string{
	"metadata.name",
	"spec.schematicID",
	"spec.version",
	"status.phase",
}

func init() {
	localSchemeBuilder.Register(addFieldLabelConversions)
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	for kind, selectable := range map[string][]string{
		"WorkerImage":  WorkerImageSelectableFields,
		"CatalogEntry": CatalogEntrySelectableFields,
	} {
		if err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind), selectors(selectable)); err != nil {
			return err
		}
	}
	return nil
}

// selectors accepts the fields that are selectable, as they are.
func selectors(selectable []string) runtime.FieldLabelConversionFunc {
	return func(label, value string) (string, string, error) {
		if !slices.Contains(selectable, label) {
			return "", "", fmt.Errorf("field label not supported: %q; supported are %s", label, strings.Join(selectable, ", "))
		}
		return label, value, nil
	}
}
