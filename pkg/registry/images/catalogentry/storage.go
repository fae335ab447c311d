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

package catalogentry

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/reader"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
)

// KeyPrefix is where the log keeps CatalogEntries: an object's key is the prefix, a slash and its name.
const KeyPrefix = "/images.cozystack.io/catalogentries"

// REST serves CatalogEntries. The verbs are the Reader's.
type REST struct {
	*reader.Reader
}

// NewREST returns the REST storage of CatalogEntries on s, whose pools callers sees to.
func NewREST(scheme *runtime.Scheme, codec runtime.Codec, s storage.Interface, callers *view.View) (*REST, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &images.CatalogEntry{} },
		NewListFunc:               func() runtime.Object { return &images.CatalogEntryList{} },
		DefaultQualifiedResource:  images.Resource("catalogentries"),
		SingularQualifiedResource: images.Resource("catalogentry"),
		UpdateStrategy:            neverWritten{},
		DeleteStrategy:            scheme,
		TableConvertor:            newTable(),
	}
	r, err := reader.New(reader.Config{
		Store:      store,
		Storage:    s,
		Codec:      codec,
		KeyPrefix:  KeyPrefix,
		Attributes: Attributes,
		View:       callers,
		ShortNames: []string{"wie"},
	})
	if err != nil {
		return nil, err
	}
	return &REST{Reader: r}, nil
}

// neverWritten is the strategy of objects that nobody writes. The Store asks for the scope; everything else
// is asked by verbs that are not served.
type neverWritten struct {
	rest.RESTUpdateStrategy
}

func (neverWritten) NamespaceScoped() bool { return false }

// Attributes are what label and field selectors match. The fields are those that the served version
// declares selectable.
func Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	entry, ok := obj.(*images.CatalogEntry)
	if !ok {
		return nil, nil, fmt.Errorf("not a CatalogEntry: %T", obj)
	}
	return labels.Set(entry.Labels), fields.Set{
		"metadata.name":    entry.Name,
		"spec.schematicID": entry.Spec.SchematicID,
		"spec.version":     entry.Spec.Version,
		"status.phase":     string(entry.Status.Phase),
	}, nil
}
