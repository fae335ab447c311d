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

package workerimage

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

func TestSelectableFieldsAreTheServedOnes(t *testing.T) {
	object := image()
	object.Labels = map[string]string{"team": "a"}
	labels, fields, err := Attributes(object)
	if err != nil {
		t.Fatal(err)
	}
	if labels.Get("team") != "a" {
		t.Errorf("labels %v", labels)
	}
	want := map[string]string{
		"metadata.name":                 object.Name,
		"spec.schematicID":              "gpu-nvidia-open",
		"spec.version":                  "v1.13.6",
		"status.phase":                  "Importing",
		"status.storageClass.effective": "replicated",
	}
	for _, name := range v1alpha1.WorkerImageSelectableFields {
		if value, ok := want[name]; !ok || fields.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, fields.Get(name), value)
		}
	}
	for name := range fields {
		if !slices.Contains(v1alpha1.WorkerImageSelectableFields, name) {
			t.Errorf("%s can be matched and is not served", name)
		}
	}
}

func TestAnUnknownClassIsSelectedAsEmpty(t *testing.T) {
	_, fields, err := Attributes(&images.WorkerImage{})
	if err != nil {
		t.Fatal(err)
	}
	if value, ok := fields["status.storageClass.effective"]; !ok || value != "" {
		t.Errorf("class %q, present: %t", value, ok)
	}
}

func TestSpecDoesNotChange(t *testing.T) {
	s := strategy{}
	before, after := image(), image()
	if errs := s.ValidateUpdate(t.Context(), after, before); len(errs) != 0 {
		t.Errorf("the same spec is refused: %v", errs)
	}
	after.Spec.Version = "v9.9.9"
	if errs := s.ValidateUpdate(t.Context(), after, before); len(errs) != 1 || errs[0].Field != "spec.version" {
		t.Errorf("another version: %v", errs)
	}
}

func TestStatusOfAnUpdateIsIgnored(t *testing.T) {
	before, after := image(), image()
	after.Status = images.WorkerImageStatus{Phase: images.WorkerImageReady}
	strategy{}.PrepareForUpdate(t.Context(), after, before)
	if after.Status.Phase != images.WorkerImageImporting {
		t.Errorf("a client set phase %s", after.Status.Phase)
	}
}

func TestStatusOfACreateIsIgnored(t *testing.T) {
	created := image()
	strategy{}.PrepareForCreate(t.Context(), created)
	want := images.WorkerImageStatus{ObservedGeneration: 1, Phase: images.WorkerImagePending}
	if diff := cmp.Diff(want, created.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if created.Generation != 1 {
		t.Errorf("generation %d", created.Generation)
	}
}

func TestNobodyCanOwnTheStatus(t *testing.T) {
	status := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	for version, set := range (strategy{}).GetResetFields() {
		if version != "images.cozystack.io/v1alpha1" || !set.Equals(status) {
			t.Errorf("%s: %s", version, set)
		}
	}
	if n := len(strategy{}.GetResetFields()); n != 1 {
		t.Errorf("fields of %d versions", n)
	}
}

func TestPlainHTTPIsAcceptedWithAWarning(t *testing.T) {
	for url, want := range map[string]int{"https://factory.talos.dev": 0, "http://mirror:8080": 1} {
		s := strategy{plan: func(id golden.ID) (catalog.Entry, field.ErrorList) {
			return catalog.Entry{ID: id, ImageFactoryURL: url}, nil
		}}
		if warnings := s.WarningsOnCreate(t.Context(), image()); len(warnings) != want {
			t.Errorf("%s: %v", url, warnings)
		}
	}
}

func TestLegalPairsAreValid(t *testing.T) {
	for _, id := range []golden.ID{
		{SchematicID: strings.Repeat("c", 64), Version: "v1.13.6"},
		{SchematicID: "abc", Version: "v1.14.0-alpha.1"},
		{SchematicID: "abc-v1", Version: "v1.13.6"},
		{SchematicID: "abc", Version: "v1.0.0-v2.0.0"},
	} {
		if errs := validateSpec(images.WorkerImageSpec{SchematicID: id.SchematicID, Version: id.Version}); len(errs) != 0 {
			t.Errorf("%v: %v", id, errs)
		}
	}
}
