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

package option

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/reader"
)

// KeyPrefix is where the log keeps Options: an object's key is the prefix, a slash, its namespace, a slash and
// its name.
const KeyPrefix = "/images.cozystack.io/options"

// Attributes are what label and field selectors match.
func Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	return storage.DefaultNamespaceScopedAttr(obj)
}

// REST serves Options. The verbs are the Reader's, in translation.
type REST struct {
	*reader.Reader
	// namespace is where the log has the Options.
	namespace string
}

// NewREST returns the REST storage of Options on s, which has them in one namespace.
func NewREST(scheme *runtime.Scheme, codec runtime.Codec, s storage.Interface, namespace string) (*REST, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &images.Option{} },
		NewListFunc:               func() runtime.Object { return &images.OptionList{} },
		DefaultQualifiedResource:  images.Resource("options"),
		SingularQualifiedResource: images.Resource("option"),
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
	})
	if err != nil {
		return nil, err
	}
	return &REST{Reader: r, namespace: namespace}, nil
}

// neverWritten is the strategy of objects that nobody writes. The Store asks for the scope; everything else
// is asked by verbs that are not served.
type neverWritten struct {
	rest.RESTUpdateStrategy
}

func (neverWritten) NamespaceScoped() bool { return true }

// Get returns the Option of that name in the namespace of the request.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	t := r.translation(ctx)
	obj, err := r.Reader.Get(t.context(ctx), name, options)
	if err != nil {
		return nil, err
	}
	option, ok := obj.(*images.Option)
	if !ok {
		return nil, fmt.Errorf("not an Option: %T", obj)
	}
	t.stamp(option)
	return option, nil
}

// List returns the Options that the options select in the namespace of the request.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	t := r.translation(ctx)
	options, err := t.listOptions(options)
	if err != nil {
		return nil, err
	}
	obj, err := r.Reader.List(t.context(ctx), options)
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*images.OptionList)
	if !ok {
		return nil, fmt.Errorf("not a list of Options: %T", obj)
	}
	for i := range list.Items {
		t.stamp(&list.Items[i])
	}
	return list, nil
}

// Watch streams the changes of the Options that the options select in the namespace of the request.
func (r *REST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	t := r.translation(ctx)
	options, err := t.listOptions(options)
	if err != nil {
		return nil, err
	}
	w, err := r.Reader.Watch(t.context(ctx), options)
	if err != nil || t.isIdentity() {
		return w, err
	}
	return newStampedWatch(w, t), nil
}
