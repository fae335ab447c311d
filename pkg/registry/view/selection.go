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
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// Where objects are hidden, the view selects and pages: what a selector of the store's matches, where its pages
// end, the token of the next page and the number of objects that are left would tell of what is hidden.

// listShown lists for who does not see all.
func (s *Store) listShown(ctx context.Context, caller *Caller, options *internalversion.ListOptions) (runtime.Object, error) {
	obj, err := s.store.List(ctx, s.inAnyView(options))
	if err != nil {
		return nil, err
	}
	if obj, err = caller.filter(ctx, obj); err != nil {
		return nil, err
	}
	list, ok := obj.(*images.CatalogEntryList)
	if !ok {
		return nil, apierrors.NewInternalError(errUnknownKind(obj))
	}
	selects := s.predicate(options)
	selected := list.Items[:0]
	for i := range list.Items {
		matches, err := selects.Matches(&list.Items[i])
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if matches {
			selected = append(selected, list.Items[i])
		}
	}
	list.Items = selected
	if err := cut(list, selects); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return list, nil
}

// cut leaves of a list its first page.
func cut(list *images.CatalogEntryList, selects storage.SelectionPredicate) error {
	all := int64(len(list.Items))
	if selects.Limit <= 0 || all <= selects.Limit {
		return nil
	}
	list.Items = list.Items[:selects.Limit]
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	const root = "/" // a token has the part of the key that follows it
	last := list.Items[selects.Limit-1].Name
	list.Continue, list.RemainingItemCount, err = storage.PrepareContinueToken(root+last, root, version, all, true, storage.ListOptions{Predicate: selects})
	return err
}

// inAnyView returns the options that select all that any caller is shown of what options select.
func (s *Store) inAnyView(options *internalversion.ListOptions) *internalversion.ListOptions {
	if options == nil {
		return &internalversion.ListOptions{}
	}
	out := *options
	if !s.hides {
		return &out
	}
	out.Limit = 0
	if out.FieldSelector != nil {
		out.FieldSelector, _ = out.FieldSelector.Transform(func(field, value string) (string, string, error) {
			if field == phaseField {
				return "", "", nil
			}
			return field, value, nil
		})
	}
	return &out
}

// predicate is what options select of what is shown.
func (s *Store) predicate(options *internalversion.ListOptions) storage.SelectionPredicate {
	label, field, limit := labels.Everything(), fields.Everything(), int64(0)
	if options != nil {
		if options.LabelSelector != nil {
			label = options.LabelSelector
		}
		if options.FieldSelector != nil {
			field = options.FieldSelector
		}
		limit = options.Limit
	}
	out := s.store.PredicateFunc(label, field)
	out.Limit = limit
	return out
}
