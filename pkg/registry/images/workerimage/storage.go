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

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
)

// KeyPrefix is where the log keeps WorkerImages: an object's key is the prefix, a slash and its name.
const KeyPrefix = "/images.cozystack.io/workerimages"

// Rehearser asks the cluster whether it would accept a write. A dry run never reaches the storage.
type Rehearser interface {
	DryRunCreate(ctx context.Context, image *images.WorkerImage) error
	DryRunUpdate(ctx context.Context, before, image *images.WorkerImage) error
	DryRunDelete(ctx context.Context, image *images.WorkerImage) error
}

// Config is what the REST storage needs. All of it is required.
type Config struct {
	Scheme  *runtime.Scheme
	Codec   runtime.Codec
	Storage storage.Interface
	// Plan returns the catalog entry that an image is made from.
	Plan catalog.Planner
	// Plannable returns why Plan has no answer now.
	Plannable func() error
	Rehearser Rehearser
}

// REST serves WorkerImages. It wraps the Store and does not embed it: a verb is served only when it is
// written here.
type REST struct {
	store     *genericregistry.Store
	plannable func() error
	rehearser Rehearser
}

var (
	_ rest.StandardStorage            = &REST{}
	_ rest.Scoper                     = &REST{}
	_ rest.ShortNamesProvider         = &REST{}
	_ rest.CategoriesProvider         = &REST{}
	_ rest.SingularNameProvider       = &REST{}
	_ rest.ResetFieldsStrategy        = &REST{}
	_ rest.MayReturnFullObjectDeleter = &REST{}
)

// NewREST returns the REST storage of WorkerImages.
func NewREST(config Config) (*REST, error) {
	s := strategy{ObjectTyper: config.Scheme, plan: config.Plan}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &images.WorkerImage{} },
		NewListFunc:               func() runtime.Object { return &images.WorkerImageList{} },
		DefaultQualifiedResource:  images.Resource("workerimages"),
		SingularQualifiedResource: images.Resource("workerimage"),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            tableConvertor{},
	}
	options := &generic.StoreOptions{RESTOptions: restOptions(config.Codec, config.Storage), AttrFunc: Attributes}
	if err := store.CompleteWithOptions(options); err != nil {
		return nil, err
	}
	return &REST{store: store, plannable: config.Plannable, rehearser: config.Rehearser}, nil
}

// restOptions hands s to the Store in place of one on etcd.
func restOptions(codec runtime.Codec, s storage.Interface) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig:  (&storagebackend.Config{Codec: codec}).ForResource(images.Resource("workerimages")),
		ResourcePrefix: KeyPrefix,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return s, func() {}, nil
		},
	}
}

// New returns an empty WorkerImage.
func (r *REST) New() runtime.Object { return r.store.New() }

// NewList returns an empty list of WorkerImages.
func (r *REST) NewList() runtime.Object { return r.store.NewList() }

// Destroy releases what the Store holds.
func (r *REST) Destroy() { r.store.Destroy() }

// NamespaceScoped is false: a WorkerImage belongs to the cluster.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name of the resource.
func (r *REST) GetSingularName() string { return r.store.GetSingularName() }

// ShortNames returns the abbreviations that kubectl accepts.
func (r *REST) ShortNames() []string { return []string{"wi"} }

// Categories returns the groups of resources that the resource is listed with.
func (r *REST) Categories() []string { return []string{"cozystack"} }

// DeleteReturnsDeletedObject tells whether a delete answers with the object.
func (r *REST) DeleteReturnsDeletedObject() bool { return r.store.DeleteReturnsDeletedObject() }

// GetResetFields returns the fields that a user's word does not count for.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// Get returns the WorkerImage of that name.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// List returns the WorkerImages that the options select.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	return r.store.List(ctx, options)
}

// Watch streams the changes of the WorkerImages that the options select.
func (r *REST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	return r.store.Watch(ctx, options)
}

// ConvertToTable returns what kubectl get prints.
func (r *REST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}
