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

package options

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// The sources that a form field may name.
const (
	// Images offers WorkerImages by name.
	Images = "workerimage"
	// Schematics offers the schematic ids of images.
	Schematics = "workerimage-schematic"
	// Versions offers the Talos versions of images.
	Versions = "workerimage-version"
)

// Item is one choice. It converts to any struct of the same fields.
type Item struct {
	// Value is what is written into the field.
	Value string `json:"value"`
	// Label is what is shown.
	Label string `json:"label,omitempty"`
	// Description is a tooltip.
	Description string `json:"description,omitempty"`
	// Default is true for the choice that is preselected, which is one at most.
	Default bool `json:"default,omitempty"`
}

// Provider reads the choices from the images API. It holds nothing, and may be used by many at once.
type Provider struct {
	options dynamic.ResourceInterface
}

// New returns a Provider that reads with the client, whose user must be allowed to list options.images.cozystack.io
// in all namespaces.
func New(client dynamic.Interface) *Provider {
	resource := schema.GroupVersionResource{Group: "images.cozystack.io", Version: "v1alpha1", Resource: "options"}
	return &Provider{options: client.Resource(resource)}
}

// Items returns the choices of a source, the most suitable first. They are the same for every namespace.
func (p *Provider) Items(ctx context.Context, source string) ([]Item, error) {
	list, err := p.options.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", source).String()})
	if err != nil {
		return nil, fmt.Errorf("list options named %s: %w", source, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == source {
			return itemsOf(&list.Items[i])
		}
	}
	return nil, fmt.Errorf("there are no options named %s", source)
}

func itemsOf(option *unstructured.Unstructured) ([]Item, error) {
	var content struct {
		Spec struct {
			Items []Item `json:"items"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(option.Object, &content); err != nil {
		return nil, fmt.Errorf("read options %s/%s: %w", option.GetNamespace(), option.GetName(), err)
	}
	return content.Spec.Items, nil
}
