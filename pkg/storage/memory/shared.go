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
	"errors"
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
	previous  runtime.Object // what obj replaced; nil if nothing
	encodings map[runtime.Identifier]*encoding
	kept      int64
	forgotten bool
}

type encoding struct {
	once sync.Once
	raw  []byte
	err  error
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
	e := o.encoding(id)
	if e == nil {
		return encode(shallowCopy(o.obj), w)
	}
	e.once.Do(func() {
		e.err = errors.New("the encoder panicked") // which is not to be taken for an empty encoding
		var buf bytes.Buffer
		e.err = encode(shallowCopy(o.obj), &buf)
		e.raw = buf.Bytes()
		o.keep(int64(buf.Cap()))
	})
	if e.err != nil {
		return e.err
	}
	if s, ok := w.(runtime.Splice); ok {
		s.Splice(e.raw)
		return nil
	}
	_, err := w.Write(e.raw)
	return err
}

// GetObject implements runtime.CacheableObject.
func (o *sharedObject) GetObject() runtime.Object { return o.obj.DeepCopyObject() }

// ShallowCopy returns a copy of the outermost struct, for readers to whom a part of the object is sent.
func (o *sharedObject) ShallowCopy() runtime.Object { return shallowCopy(o.obj) }

// ShallowPrevious returns the same of the object that this one replaced, nil if there was none or once it
// is forgotten.
func (o *sharedObject) ShallowPrevious() runtime.Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.previous == nil {
		return nil
	}
	return shallowCopy(o.previous)
}

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
func (o *sharedObject) encoding(id runtime.Identifier) *encoding {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.forgotten {
		return nil
	}
	if o.encodings == nil {
		o.encodings = map[runtime.Identifier]*encoding{}
	}
	if o.encodings[id] == nil {
		o.encodings[id] = &encoding{}
	}
	return o.encodings[id]
}

func (o *sharedObject) keep(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.forgotten {
		o.kept += n
		o.bytes.Add(n)
	}
}

// forget releases the encodings and the object before, and keeps no encoding from here on.
func (o *sharedObject) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes.Add(-o.kept)
	o.encodings, o.previous, o.kept, o.forgotten = nil, nil, 0, true
}

// shallowCopy copies the outermost struct, so that whoever gets it, encoders above all, may set
// apiVersion, kind and resourceVersion on it.
func shallowCopy(obj runtime.Object) runtime.Object {
	v := reflect.New(reflect.TypeOf(obj).Elem())
	v.Elem().Set(reflect.ValueOf(obj).Elem())
	return v.Interface().(runtime.Object)
}
