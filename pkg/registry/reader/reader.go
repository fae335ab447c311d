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

package reader

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

	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
)

// category is the group of resources that all of them are listed with.
const category = "cozystack"

// Reader serves the verbs of a Store that read, and no other. It wraps the Store, so that who embeds a Reader
// serves what is written there besides, and nothing that the Store happens to have.
type Reader struct {
	store *genericregistry.Store
	// served is what each caller may see of the store.
	served verbs
	// list is the List of served, in the form that is cheapest to encode.
	list       func(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error)
	shortNames []string
}

type verbs interface {
	Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
	Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error)
}

var (
	_ rest.Getter               = &Reader{}
	_ rest.Lister               = &Reader{}
	_ rest.Watcher              = &Reader{}
	_ rest.Scoper               = &Reader{}
	_ rest.ShortNamesProvider   = &Reader{}
	_ rest.CategoriesProvider   = &Reader{}
	_ rest.SingularNameProvider = &Reader{}
)

// Config is what a Reader needs. All of it is required, except where it says otherwise.
type Config struct {
	// Store without what depends on the storage. New completes it.
	Store *genericregistry.Store
	// Storage is where its objects are, in the form that Codec writes.
	Storage storage.Interface
	Codec   runtime.Codec
	// KeyPrefix is where Storage keeps them: an object's key is the prefix, a slash and its name.
	KeyPrefix string
	// Attributes are what selectors match.
	Attributes storage.AttrFunc
	// View decides which pools a caller sees; nil for a kind that names none.
	View       *view.View
	ShortNames []string
}

// New completes the Store of the configuration and returns what reads from it.
func New(config Config) (*Reader, error) {
	options := &generic.StoreOptions{RESTOptions: config.restOptions(), AttrFunc: config.Attributes}
	if err := config.Store.CompleteWithOptions(options); err != nil {
		return nil, err
	}
	r := &Reader{store: config.Store, served: config.Store, list: config.Store.List, shortNames: config.ShortNames}
	if config.View != nil {
		store := view.NewStore(config.Store, config.View)
		r.served, r.list = store, store.ListShared
	}
	return r, nil
}

// restOptions hands the storage to the Store in place of one on etcd.
func (c Config) restOptions() generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig:  (&storagebackend.Config{Codec: c.Codec}).ForResource(c.Store.DefaultQualifiedResource),
		ResourcePrefix: c.KeyPrefix,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return c.Storage, func() {}, nil
		},
	}
}

// New returns an empty object.
func (r *Reader) New() runtime.Object { return r.store.New() }

// NewList returns an empty list.
func (r *Reader) NewList() runtime.Object { return r.store.NewList() }

// Destroy releases what the Store holds.
func (r *Reader) Destroy() { r.store.Destroy() }

// NamespaceScoped is false for objects that belong to the cluster.
func (r *Reader) NamespaceScoped() bool { return r.store.NamespaceScoped() }

// GetSingularName returns the singular name of the resource.
func (r *Reader) GetSingularName() string { return r.store.GetSingularName() }

// ShortNames returns the abbreviations that kubectl accepts.
func (r *Reader) ShortNames() []string { return r.shortNames }

// Categories returns the groups of resources that the resource is listed with.
func (r *Reader) Categories() []string { return []string{category} }

// Get returns the object of that name.
func (r *Reader) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.served.Get(ctx, name, options)
}

// List returns the objects that the options select.
func (r *Reader) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	return r.list(ctx, options)
}

// Watch streams the changes of the objects that the options select.
func (r *Reader) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	return r.served.Watch(ctx, options)
}

// ConvertToTable returns what kubectl get prints of what was served. It filters nothing: the rows of a watch
// are made from an encoding that callers share.
func (r *Reader) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, view.Unshared(object), tableOptions)
}
