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

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// strategy says what a user may change: labels and annotations, and nothing else.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var (
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

func newStrategy(typer runtime.ObjectTyper) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

func (strategy) NamespaceScoped() bool { return false }

func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

func (strategy) Canonicalize(runtime.Object) {}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*images.WorkerImage).Status = old.(*images.WorkerImage).Status
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	image, before := obj.(*images.WorkerImage), old.(*images.WorkerImage)
	if !apiequality.Semantic.DeepEqual(image.Spec, before.Spec) {
		return field.ErrorList{field.Forbidden(field.NewPath("spec"),
			"the identity of an image does not change; another schematic or version is another WorkerImage")}
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
