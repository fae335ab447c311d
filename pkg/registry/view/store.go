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

package view

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// Store is a Store as each caller may see it.
type Store struct {
	store *genericregistry.Store
	view  *View
	// hides is true for a kind whose objects are there only to some callers.
	hides bool
}

// NewStore returns store, which is complete, as the callers of view may see it.
func NewStore(store *genericregistry.Store, view *View) *Store {
	_, hides := store.NewFunc().(*images.CatalogEntry)
	return &Store{store: store, view: view, hides: hides}
}

// DeleteReturnsDeletedObject tells whether a delete answers with the object.
func (s *Store) DeleteReturnsDeletedObject() bool { return s.store.DeleteReturnsDeletedObject() }

// GetResetFields returns the fields that a user's word does not count for.
func (s *Store) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// Get returns the object of that name.
func (s *Store) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return s.view.Caller(ctx).filter(ctx, obj)
}

// List returns the objects that the options select.
func (s *Store) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	caller := s.view.Caller(ctx)
	if s.hides && !caller.seesAll(ctx) {
		return s.listShown(ctx, caller, options)
	}
	list, err := s.store.List(ctx, options)
	if err != nil {
		return nil, err
	}
	return caller.filter(ctx, list)
}

// Create creates an object.
func (s *Store) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	created, err := s.store.Create(ctx, obj, validate, options)
	if err != nil {
		return nil, err
	}
	return s.view.Caller(ctx).filter(ctx, created)
}

// Update changes what the caller may see of an object. What it may not see stays as it is, which is the
// update strategy's to ensure.
func (s *Store) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	caller := s.view.Caller(ctx)
	obj, created, err := s.store.Update(ctx, name, visibleInfo{info, caller}, create, visibleUpdate(update, caller), forceAllowCreate, options)
	if err != nil {
		return nil, false, err
	}
	shown, err := caller.filter(ctx, obj)
	return shown, created, err
}

// ValidateDeleteFunc is told what is to be deleted, and what the caller may see of it: nothing else may show
// in what it answers.
type ValidateDeleteFunc func(ctx context.Context, obj, shown runtime.Object) error

// Delete deletes the object of that name.
func (s *Store) Delete(ctx context.Context, name string, validate ValidateDeleteFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	caller := s.view.Caller(ctx)
	obj, deleted, err := s.store.Delete(ctx, name, func(ctx context.Context, obj runtime.Object) error {
		shown, err := caller.filter(ctx, obj.DeepCopyObject())
		if err != nil {
			return err
		}
		return validate(ctx, obj, shown)
	}, options)
	if err != nil {
		return nil, false, err
	}
	shown, err := caller.filter(ctx, obj)
	return shown, deleted, err
}

// visibleInfo computes an update from what the caller may see.
type visibleInfo struct {
	rest.UpdatedObjectInfo
	caller *Caller
}

func (i visibleInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	shown, err := i.caller.filter(ctx, old.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	return i.UpdatedObjectInfo.UpdatedObject(ctx, shown)
}

// visibleUpdate validates what the caller may see: an admission policy may quote the object in its refusal.
func visibleUpdate(validate rest.ValidateObjectUpdateFunc, caller *Caller) rest.ValidateObjectUpdateFunc {
	if validate == nil {
		return nil
	}
	return func(ctx context.Context, obj, old runtime.Object) error {
		shown, err := caller.filter(ctx, obj.DeepCopyObject())
		if err != nil {
			return err
		}
		shownOld, err := caller.filter(ctx, old.DeepCopyObject())
		if err != nil {
			return err
		}
		return validate(ctx, shown, shownOld)
	}
}

// filter returns what the caller may see of an object or a list, whose structs must be the caller's own: what
// they point to is not modified. An object that the caller may not see at all is not found.
func (c *Caller) filter(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	if _, ok := obj.(*metav1.Status); ok { // how a deletion is answered
		return obj, nil
	}
	fields, err := fieldsOf(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	c.learn(ctx, fields)
	c.hide(fields)
	return withoutHidden(obj)
}

func (c *Caller) hide(fields []poolFields) {
	for _, f := range fields {
		if shown := c.visible(*f.pools); len(shown) < len(*f.pools) {
			f.show(shown)
		}
	}
}
