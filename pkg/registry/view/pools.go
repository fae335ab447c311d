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

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// poolFields are where an object keeps its pools.
type poolFields struct {
	pools *[]images.PoolStatus
	count *int32
}

// fieldsOf returns the fields of an object, or of all objects in a list. It fails for a kind that it does not
// know, so that none is served unfiltered.
func fieldsOf(obj runtime.Object) ([]poolFields, error) {
	switch o := obj.(type) {
	case *images.WorkerImage:
		return []poolFields{{&o.Status.Pools, &o.Status.PoolCount}}, nil
	case *images.WorkerImageList:
		out := make([]poolFields, 0, len(o.Items))
		for i := range o.Items {
			out = append(out, poolFields{&o.Items[i].Status.Pools, &o.Items[i].Status.PoolCount})
		}
		return out, nil
	case *images.CatalogEntry:
		return []poolFields{{&o.Status.Pools, &o.Status.PoolCount}}, nil
	case *images.CatalogEntryList:
		out := make([]poolFields, 0, len(o.Items))
		for i := range o.Items {
			out = append(out, poolFields{&o.Items[i].Status.Pools, &o.Items[i].Status.PoolCount})
		}
		return out, nil
	}
	return nil, fmt.Errorf("it is not known where %T keeps its pools", obj)
}
