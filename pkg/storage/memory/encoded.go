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
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// EncodedList is the list of everything at one version, together with its encodings, each of which is made
// once. What has not changed since the version before is not encoded again.
type EncodedList struct {
	rv      uint64
	entries []*entry // sorted by key
	newList func() runtime.Object

	mu        sync.Mutex
	encodings map[runtime.Identifier]*Encoding
	// before are the encodings of an earlier version, to take items from.
	before map[runtime.Identifier]*Encoding
}

// Encoding is a list as one encoder writes it. It must not be modified.
type Encoding struct {
	once sync.Once
	made atomic.Bool // the rest is there
	err  error

	body  []byte
	items map[*entry][]byte // parts of body; nil where it cannot be told what they are

	compressed sync.Once
	gzip       []byte
}

// Encoded returns the encodings of list if that is what everything is now, and nil otherwise. The caller vouches
// for the items, which may be fewer than there are but must not be other ones.
func (s *Storage) Encoded(list runtime.Object) *EncodedList {
	accessor, err := meta.ListAccessor(list)
	if err != nil || !s.log.Ready() {
		return nil
	}
	entries, now, err := s.log.snapshot(s.prefix, "", 0)
	if err != nil || meta.LenList(list) != len(entries) ||
		accessor.GetResourceVersion() != strconv.FormatUint(now, 10) || isShard(list) {
		return nil
	}
	s.encodedMu.Lock()
	defer s.encodedMu.Unlock()
	if s.encoded == nil || s.encoded.rv != now || !slices.Equal(s.encoded.entries, entries) {
		s.encoded = s.encoded.next(now, entries, list)
	}
	return s.encoded
}

// isShard is true for a list that says which part of everything it may be.
func isShard(list runtime.Object) bool {
	l, ok := list.(metav1.ShardedListInterface)
	return ok && l.GetShardInfo() != nil
}

// next returns the list of another version.
func (l *EncodedList) next(rv uint64, entries []*entry, list runtime.Object) *EncodedList {
	kind := reflect.TypeOf(list).Elem()
	next := &EncodedList{
		rv: rv, entries: entries, encodings: map[runtime.Identifier]*Encoding{},
		newList: func() runtime.Object { return reflect.New(kind).Interface().(runtime.Object) },
	}
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		next.before = maps.Clone(l.encodings)
	}
	return next
}

// Encode returns what an encoder with that identifier writes.
func (l *EncodedList) Encode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error) (*Encoding, error) {
	l.mu.Lock()
	e, before := l.encodings[id], l.before[id]
	if e == nil {
		e = &Encoding{}
		l.encodings[id] = e
	}
	delete(l.before, id)
	l.mu.Unlock()
	e.once.Do(func() {
		e.err = fmt.Errorf("the encoder %s panicked", id) // which is not to be taken for an empty encoding
		e.err = e.make(l, before.known(), encode)
		e.made.Store(true)
	})
	return e, e.err
}

// Body is the encoding.
func (e *Encoding) Body() []byte { return e.body }

// Gzip is the encoding, compressed.
func (e *Encoding) Gzip() []byte {
	e.compressed.Do(func() {
		var out bytes.Buffer
		// The level is a legal one, and a buffer takes everything.
		w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		_, _ = w.Write(e.body)
		_ = w.Close()
		e.gzip = bytes.Clone(out.Bytes())
	})
	return e.gzip
}

// known returns the items of an encoding as far as they are there.
func (e *Encoding) known() map[*entry][]byte {
	if e == nil || !e.made.Load() {
		return nil
	}
	return e.items
}

// What is around the items in JSON that is not indented.
var (
	itemsOpened = []byte(`"items":[`)
	itemsClosed = []byte("]}\n")
)

// make encodes the list: the items by themselves, which are joined where the encoder writes what can be joined.
func (e *Encoding) make(l *EncodedList, known map[*entry][]byte, encode func(runtime.Object, io.Writer) error) error {
	empty, err := l.encode(nil, encode)
	if err != nil {
		return err
	}
	head, closed := bytes.CutSuffix(empty, itemsClosed)
	if !closed || !bytes.HasSuffix(head, itemsOpened) {
		e.body, err = l.encode(l.entries, encode)
		return err
	}
	parts := make([][]byte, len(l.entries))
	size := len(empty) + len(parts)
	for i, entry := range l.entries {
		if parts[i] = known[entry]; parts[i] == nil {
			if parts[i], err = l.encodeItem(entry, head, encode); err != nil {
				return err
			}
		}
		size += len(parts[i])
	}
	e.join(l.entries, parts, head, size)
	return nil
}

func (e *Encoding) join(entries []*entry, parts [][]byte, head []byte, size int) {
	e.body = append(make([]byte, 0, size), head...)
	e.items = make(map[*entry][]byte, len(entries))
	for i, part := range parts {
		if i > 0 {
			e.body = append(e.body, ',')
		}
		start := len(e.body)
		e.body = append(e.body, part...)
		e.items[entries[i]] = e.body[start:len(e.body):len(e.body)]
	}
	e.body = append(e.body, itemsClosed...)
}

// encodeItem returns what a list with one item has between head and its end.
func (l *EncodedList) encodeItem(item *entry, head []byte, encode func(runtime.Object, io.Writer) error) ([]byte, error) {
	out, err := l.encode([]*entry{item}, encode)
	if err != nil {
		return nil, err
	}
	part, begins := bytes.CutPrefix(out, head)
	part, ends := bytes.CutSuffix(part, itemsClosed)
	if !begins || !ends {
		return nil, fmt.Errorf("a list with %s is not encoded as one without", item.key)
	}
	return part, nil
}

// encode encodes a list of this version with the items that are given.
func (l *EncodedList) encode(entries []*entry, encode func(runtime.Object, io.Writer) error) ([]byte, error) {
	list := l.newList()
	if err := setItems(list, entries); err != nil {
		return nil, err
	}
	if err := (storage.APIObjectVersioner{}).UpdateList(list, l.rv, "", nil); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := encode(list, &out)
	return out.Bytes(), err
}
