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
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// strategy says what a user may write: an image of the catalog, with labels and annotations. Everything else
// is computed.
type strategy struct {
	runtime.ObjectTyper
	plan catalog.Planner
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func (strategy) NamespaceScoped() bool { return false }

func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

func (strategy) Canonicalize(runtime.Object) {}

// GenerateName is asked before Validate, which refuses generateName.
func (strategy) GenerateName(base string) string { return base }

// GetResetFields takes the status out of what a user can own.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	image := obj.(*images.WorkerImage)
	if image.Name == "" {
		image.Name = goldenName(image)
	}
	image.Generation = 1
	image.Status = images.WorkerImageStatus{ObservedGeneration: 1, Phase: images.WorkerImagePending}
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	image, before := obj.(*images.WorkerImage), old.(*images.WorkerImage)
	image.Generation = before.Generation
	image.Status = before.Status
}

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	image := obj.(*images.WorkerImage)
	errs := validateNew(image)
	if len(validateSpec(image.Spec)) > 0 {
		return errs
	}
	_, planErrs := s.plan(golden.ID{SchematicID: image.Spec.SchematicID, Version: image.Spec.Version})
	return append(errs, planErrs...)
}

// validateNew returns what is wrong with an image whatever the catalog says. The name may be missing.
func validateNew(image *images.WorkerImage) field.ErrorList {
	errs := validateMetadata(image)
	if image.GenerateName != "" {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "generateName"), "the name of an image follows from its spec; leave it out"))
	}
	specErrs := validateSpec(image.Spec)
	errs = append(errs, specErrs...)
	if len(specErrs) > 0 {
		return errs
	}
	if want := goldenName(image); image.Name != want && image.Name != "" && image.GenerateName == "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), image.Name, "the name of this image is "+want+"; it may be left out"))
	}
	return errs
}

func validateSpec(spec images.WorkerImageSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	for _, part := range []struct {
		path     *field.Path
		value    string
		validate func(string) []string
	}{
		{path.Child("schematicID"), spec.SchematicID, golden.ValidateSchematicID},
		{path.Child("version"), spec.Version, golden.ValidateVersion},
	} {
		if part.value == "" {
			errs = append(errs, field.Required(part.path, ""))
			continue
		}
		for _, message := range part.validate(part.value) {
			errs = append(errs, field.Invalid(part.path, part.value, message))
		}
	}
	if name := (golden.ID{SchematicID: spec.SchematicID, Version: spec.Version}).Name(); len(errs) == 0 {
		if id, ok := golden.ParseName(name); !ok || id.SchematicID != spec.SchematicID || id.Version != spec.Version {
			errs = append(errs, field.Invalid(path, name, "the two together must make the name of an object, of at most 253 characters"))
		}
	}
	return errs
}

// validateMetadata refuses what cannot be kept.
func validateMetadata(image *images.WorkerImage) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata")
	const notKept = "only labels and annotations are kept with an image"
	if len(image.Finalizers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("finalizers"), notKept))
	}
	if len(image.OwnerReferences) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ownerReferences"), notKept))
	}
	if _, err := (golden.Metadata{Labels: image.Labels, Annotations: image.Annotations, ManagedFields: image.ManagedFields}).Encode(); err != nil {
		errs = append(errs, field.Invalid(path, "", err.Error()))
	}
	return errs
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	image, before := obj.(*images.WorkerImage), old.(*images.WorkerImage)
	errs := validateMetadata(image)
	path := field.NewPath("spec")
	for _, part := range []struct {
		path        *field.Path
		value, want string
	}{
		{path.Child("schematicID"), image.Spec.SchematicID, before.Spec.SchematicID},
		{path.Child("version"), image.Spec.Version, before.Spec.Version},
	} {
		if part.value != part.want {
			errs = append(errs, field.Invalid(part.path, part.value,
				fmt.Sprintf("the identity of an image does not change, and this one is %s; another schematic or version is another WorkerImage", part.want)))
		}
	}
	return errs
}

// WarningsOnCreate names what is legal and unwise.
func (s strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	spec := obj.(*images.WorkerImage).Spec
	entry, errs := s.plan(golden.ID{SchematicID: spec.SchematicID, Version: spec.Version})
	if len(errs) == 0 && entry.Insecure() {
		return []string{"the image is imported over plain http: nothing protects it on its way but the checksum that the catalog may declare"}
	}
	return nil
}

func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Attributes are what label and field selectors match. The fields are those that the served version
// declares selectable.
func Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	image, ok := obj.(*images.WorkerImage)
	if !ok {
		return nil, nil, fmt.Errorf("not a WorkerImage: %T", obj)
	}
	set := fields.Set{
		"metadata.name":                 image.Name,
		"spec.schematicID":              image.Spec.SchematicID,
		"spec.version":                  image.Spec.Version,
		"status.phase":                  string(image.Status.Phase),
		"status.storageClass.effective": "",
	}
	if class := image.Status.StorageClass; class != nil {
		set["status.storageClass.effective"] = class.Effective
	}
	return labels.Set(image.Labels), set, nil
}
