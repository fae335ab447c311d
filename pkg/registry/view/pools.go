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
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// poolFields are where an object keeps its pools.
type poolFields struct {
	pools *[]images.PoolStatus
	count *int32
	// entry is set where more depends on the pools than the two.
	entry *images.CatalogEntry
}

// phaseField is the one selectable field that differs from caller to caller.
const phaseField = "status.phase"

// show leaves of the pools those that are shown.
func (f poolFields) show(shown []images.PoolStatus) {
	if f.entry != nil {
		projection.AskedBy(f.entry, shown)
		return
	}
	*f.pools, *f.count = shown, int32(len(shown))
}

// withoutHidden returns an object, or a list, without what is there only for pools that are not shown. An object
// that is nothing else is not found.
func withoutHidden(obj runtime.Object) (runtime.Object, error) {
	switch o := obj.(type) {
	case *images.CatalogEntry:
		if isHidden(*o) {
			return nil, apierrors.NewNotFound(images.Resource("catalogentries"), o.Name)
		}
	case *images.CatalogEntryList:
		o.Items = slices.DeleteFunc(o.Items, isHidden)
	}
	return obj, nil
}

func isHidden(shown images.CatalogEntry) bool { return !projection.AskedBy(&shown, shown.Status.Pools) }

// fieldsOf returns the fields of an object, or of all objects in a list. It fails for a kind that it does not
// know, so that none is served unfiltered.
func fieldsOf(obj runtime.Object) ([]poolFields, error) {
	switch o := obj.(type) {
	case *images.WorkerImage:
		return []poolFields{{pools: &o.Status.Pools, count: &o.Status.PoolCount}}, nil
	case *images.WorkerImageList:
		out := make([]poolFields, 0, len(o.Items))
		for i := range o.Items {
			out = append(out, poolFields{pools: &o.Items[i].Status.Pools, count: &o.Items[i].Status.PoolCount})
		}
		return out, nil
	case *images.CatalogEntry:
		return []poolFields{{pools: &o.Status.Pools, count: &o.Status.PoolCount, entry: o}}, nil
	case *images.CatalogEntryList:
		out := make([]poolFields, 0, len(o.Items))
		for i := range o.Items {
			out = append(out, poolFields{pools: &o.Items[i].Status.Pools, count: &o.Items[i].Status.PoolCount, entry: &o.Items[i]})
		}
		return out, nil
	}
	return nil, errUnknownKind(obj)
}

func errUnknownKind(obj runtime.Object) error {
	return fmt.Errorf("it is not known where %T keeps its pools", obj)
}
