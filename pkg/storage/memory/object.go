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

package memory

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
)

// visibleEquality compares values as they are written to clients. Unlike equality.Semantic it tells
// 1Gi from 1073741824, and takes two times within the second that is written for the same.
var visibleEquality = conversion.EqualitiesOrDie(
	func(a, b resource.Quantity) bool { return a.String() == b.String() },
	func(a, b metav1.Time) bool { return a.Unix() == b.Unix() },
	func(a, b metav1.MicroTime) bool { return a.UnixMicro() == b.UnixMicro() },
	func(a, b metav1.FieldsV1) bool { return a.Equal(b) },
)

// sameContent tells whether clients read the same from obj as from what is published. It gives obj
// the published version, so that the version makes no difference.
func sameContent(published *entry, obj runtime.Object) (bool, error) {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // published objects have none
	if err := (storage.APIObjectVersioner{}).UpdateObject(obj, published.rv); err != nil {
		return false, err
	}
	return visibleEquality.DeepEqual(published.obj, obj), nil
}

func uidOf(obj runtime.Object) types.UID {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}

// settle makes obj safe to be read by many at once, and estimates the memory that it takes. What
// writes on reading is a Quantity, which remembers the string that it was first asked for.
func settle(obj runtime.Object) int64 {
	return int64(settleValue(reflect.ValueOf(obj)))
}

// settleValue returns what v refers to; the size of v itself is its holder's.
func settleValue(v reflect.Value) uintptr {
	switch v.Kind() {
	case reflect.String:
		return uintptr(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return v.Elem().Type().Size() + settleValue(v.Elem())
	case reflect.Slice:
		size := uintptr(v.Cap()) * v.Type().Elem().Size()
		return size + settleElements(v)
	case reflect.Array:
		return settleElements(v)
	case reflect.Map:
		var size uintptr
		for iter := v.MapRange(); iter.Next(); {
			size += v.Type().Key().Size() + v.Type().Elem().Size() + settleValue(iter.Key()) + settleValue(iter.Value())
		}
		return size
	case reflect.Struct:
		return settleStruct(v)
	default:
		return 0
	}
}

func settleElements(v reflect.Value) (size uintptr) {
	switch v.Type().Elem().Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		for i := range v.Len() {
			size += settleValue(v.Index(i))
		}
	}
	return size
}

func settleStruct(v reflect.Value) (size uintptr) {
	switch v.Type() {
	case reflect.TypeFor[time.Time](): // refers to a time zone that is everybody's
		return 0
	case reflect.TypeFor[resource.Quantity]():
		if v.CanAddr() && v.Addr().CanInterface() {
			return uintptr(len(v.Addr().Interface().(*resource.Quantity).String()))
		}
		return 0
	}
	for i := range v.NumField() {
		size += settleValue(v.Field(i))
	}
	return size
}
