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
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/precompressed"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// sharer is a storage that keeps the encodings of what it lists.
type sharer interface {
	Encoded(list runtime.Object) *memory.EncodedList
}

// ListShared is List for who encodes the answer: a list of which nothing is hidden comes in a form that is encoded
// once for all who are sent the same. For tables and partial metadata it is still a list.
func (s *Store) ListShared(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	ctx = s.view.NewContext(ctx)
	list, err := s.List(ctx, options)
	if err != nil || !s.view.Caller(ctx).seesAll(ctx) {
		return list, err
	}
	storage, ok := s.store.Storage.Storage.(sharer)
	if !ok {
		return list, nil
	}
	encoded := storage.Encoded(list)
	if encoded == nil {
		return list, nil
	}
	e := encodings{list: list, encoded: encoded, answer: precompressed.AnswerTo(ctx)}
	switch l := list.(type) {
	case *images.WorkerImageList:
		return &workerImageList{WorkerImageList: l, encodings: e}, nil
	case *images.CatalogEntryList:
		return &catalogEntryList{CatalogEntryList: l, encodings: e}, nil
	}
	return list, nil
}

// Unshared returns the plain list for one of ListShared, and any other object as it is.
func Unshared(obj runtime.Object) runtime.Object {
	if l, ok := obj.(interface{ unshared() runtime.Object }); ok {
		return l.unshared()
	}
	return obj
}

type workerImageList struct {
	*images.WorkerImageList
	encodings
}

type catalogEntryList struct {
	*images.CatalogEntryList
	encodings
}

var (
	_ runtime.CacheableObject = &workerImageList{}
	_ runtime.CacheableObject = &catalogEntryList{}
)

// encodings are those of a list.
type encodings struct {
	list    runtime.Object
	encoded *memory.EncodedList
	answer  *precompressed.Answer
}

// CacheEncode implements runtime.CacheableObject.
func (e encodings) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	encoding, err := e.encoded.Encode(id, encode)
	if err != nil {
		return err
	}
	return e.answer.Encode(w, encoding)
}

// GetObject implements runtime.CacheableObject.
func (e encodings) GetObject() runtime.Object { return e.list.DeepCopyObject() }

func (e encodings) unshared() runtime.Object { return e.list }
