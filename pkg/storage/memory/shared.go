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
	"bytes"
	"io"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sharedObject is what watchers are sent: an immutable object together with its encodings, each of
// which is made once. It is the watch cache's cachingObject without setters: nobody may set
// anything on it.
type sharedObject struct {
	obj   runtime.Object
	bytes *atomic.Int64 // of all encodings that a log keeps

	mu        sync.Mutex
	encodings map[runtime.Identifier]func() ([]byte, error)
	kept      int64
	forgotten bool
}

var (
	_ runtime.CacheableObject   = &sharedObject{}
	_ metav1.ObjectMetaAccessor = &sharedObject{}
)

func newSharedObject(obj runtime.Object, bytes *atomic.Int64) *sharedObject {
	return &sharedObject{obj: obj, bytes: bytes}
}

// CacheEncode implements runtime.CacheableObject.
func (o *sharedObject) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	encoding := o.encoding(id, encode)
	if encoding == nil {
		return encode(shallowCopy(o.obj), w)
	}
	raw, err := encoding()
	if err != nil {
		return err
	}
	if s, ok := w.(runtime.Splice); ok {
		s.Splice(raw)
		return nil
	}
	_, err = w.Write(raw)
	return err
}

// GetObject implements runtime.CacheableObject.
func (o *sharedObject) GetObject() runtime.Object { return o.obj.DeepCopyObject() }

// GetObjectMeta implements metav1.ObjectMetaAccessor, for those who look at what passes by. It is of
// a copy, which may be written to in vain.
func (o *sharedObject) GetObjectMeta() metav1.Object {
	accessor, err := meta.Accessor(shallowCopy(o.obj))
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return accessor
}

// GetObjectKind implements runtime.Object. The object's own kind could be written to.
func (o *sharedObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (o *sharedObject) DeepCopyObject() runtime.Object {
	return newSharedObject(o.obj.DeepCopyObject(), new(atomic.Int64))
}

// encoding returns nil once the encodings are forgotten.
func (o *sharedObject) encoding(id runtime.Identifier, encode func(runtime.Object, io.Writer) error) func() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.forgotten {
		return nil
	}
	if existing, ok := o.encodings[id]; ok {
		return existing
	}
	made := sync.OnceValues(func() ([]byte, error) {
		var buf bytes.Buffer
		if err := encode(shallowCopy(o.obj), &buf); err != nil {
			return nil, err
		}
		o.keep(int64(buf.Cap()))
		return buf.Bytes(), nil
	})
	if o.encodings == nil {
		o.encodings = map[runtime.Identifier]func() ([]byte, error){}
	}
	o.encodings[id] = made
	return made
}

func (o *sharedObject) keep(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.forgotten {
		o.kept += n
		o.bytes.Add(n)
	}
}

// forget releases the encodings, and keeps none from here on.
func (o *sharedObject) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes.Add(-o.kept)
	o.encodings, o.kept, o.forgotten = nil, 0, true
}

// shallowCopy copies the outermost struct, so that whoever gets it, encoders above all, may set
// apiVersion, kind and resourceVersion on it.
func shallowCopy(obj runtime.Object) runtime.Object {
	v := reflect.New(reflect.TypeOf(obj).Elem())
	v.Elem().Set(reflect.ValueOf(obj).Elem())
	return v.Interface().(runtime.Object)
}
