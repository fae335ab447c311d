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

	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/reader"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
)

// KeyPrefix is where the log keeps WorkerImages: an object's key is the prefix, a slash and its name.
const KeyPrefix = "/images.cozystack.io/workerimages"

// Rehearser asks the cluster whether it would accept a write. A dry run never reaches the storage.
type Rehearser interface {
	DryRunCreate(ctx context.Context, image *images.WorkerImage) error
	DryRunUpdate(ctx context.Context, before, image *images.WorkerImage) error
	DryRunDelete(ctx context.Context, image *images.WorkerImage) error
}

// Observer is told what becomes of writes that are no dry run.
type Observer interface {
	Wrote(verb string, err error)
	// RefusedDelete is told the reason of the condition Deletable.
	RefusedDelete(reason string)
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
	Observer  Observer
	// View decides which pools a caller sees.
	View *view.View
}

// REST serves WorkerImages. It wraps the Store and does not embed it: a verb is served only when it is
// written here or is one of the Reader's.
type REST struct {
	*reader.Reader
	store     *view.Store
	view      *view.View
	plannable func() error
	rehearser Rehearser
	observer  Observer
}

var (
	_ rest.StandardStorage            = &REST{}
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
		TableConvertor:            newTable(),
	}
	r, err := reader.New(reader.Config{
		Store:      store,
		Storage:    config.Storage,
		Codec:      config.Codec,
		KeyPrefix:  KeyPrefix,
		Attributes: Attributes,
		View:       config.View,
		ShortNames: []string{"wi"},
	})
	if err != nil {
		return nil, err
	}
	return &REST{
		Reader:    r,
		store:     view.NewStore(store, config.View),
		view:      config.View,
		plannable: config.Plannable,
		rehearser: config.Rehearser,
		observer:  config.Observer,
	}, nil
}

// DeleteReturnsDeletedObject tells whether a delete answers with the object.
func (r *REST) DeleteReturnsDeletedObject() bool { return r.store.DeleteReturnsDeletedObject() }

// GetResetFields returns the fields that a user's word does not count for.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}
