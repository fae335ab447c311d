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
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAnEventIsEncodedOnceForAllWatchers(t *testing.T) {
	o := newSharedObject(newPod("a", "1"), new(atomic.Int64))
	var calls atomic.Int64
	encode := func(obj runtime.Object, w io.Writer) error {
		calls.Add(1)
		obj.(interface{ SetName(string) }).SetName("b") // the encoder owns what it gets
		_, err := w.Write([]byte("encoded"))
		return err
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			var buf bytes.Buffer
			if err := o.CacheEncode("json", encode, &buf); err != nil || buf.String() != "encoded" {
				t.Errorf("%q, %v", buf.String(), err)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 1 {
		t.Errorf("encoded %d times", calls.Load())
	}
	if err := o.CacheEncode("table", encode, io.Discard); err != nil || calls.Load() != 2 {
		t.Errorf("another encoding: %d, %v", calls.Load(), err)
	}
	if diff := cmp.Diff(newPod("a", "1"), o.obj); diff != "" {
		t.Error(diff)
	}
}

func TestAForgottenEventIsEncodedForEachWatcher(t *testing.T) {
	var bytes atomic.Int64
	o := newSharedObject(newPod("a", "1"), &bytes)
	calls := 0
	encode := func(obj runtime.Object, w io.Writer) error {
		if calls++; calls == 1 {
			o.forget() // while it is encoded
		}
		obj.(interface{ SetName(string) }).SetName("b")
		_, err := w.Write([]byte("encoded"))
		return err
	}
	for range 3 {
		if err := o.CacheEncode("json", encode, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 3 || bytes.Load() != 0 {
		t.Errorf("encoded %d times, %d bytes are kept", calls, bytes.Load())
	}
	if diff := cmp.Diff(newPod("a", "1"), o.obj); diff != "" {
		t.Error(diff)
	}
}

func TestAnEncoderThatFailsFailsForAll(t *testing.T) {
	for name, encode := range map[string]func(runtime.Object, io.Writer) error{
		"with an error": func(runtime.Object, io.Writer) error { return errors.New("broken") },
		"by a panic":    func(runtime.Object, io.Writer) error { panic("broken") },
	} {
		o := newSharedObject(newPod("a", "1"), new(atomic.Int64))
		func() {
			defer func() { _ = recover() }() // as the handler of the request does
			_ = o.CacheEncode("json", encode, io.Discard)
		}()
		if err := o.CacheEncode("json", encode, io.Discard); err == nil {
			t.Errorf("%s: the next watcher is sent nothing, and no error", name)
		}
	}
}

func TestEncodersDoNotWriteToSharedObjects(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	encoder := codec(t)
	e := f.log.entries[0]
	want := e.obj.DeepCopyObject()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { encodeWith(t, encoder, e.shared) })
		wg.Go(func() { encodeWith(t, encoder, shallowCopy(e.obj)) })
		wg.Go(func() {
			list, err := f.list(t.Context(), listEverything)
			if err != nil {
				t.Error(err)
			}
			list.Items[0].Kind = "Pod"
			encodeWith(t, encoder, &list.Items[0])
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, e.obj); diff != "" {
		t.Error(diff)
	}
}

func TestSharedObjectsShowTheirMetadataAndNothingCanBeSet(t *testing.T) {
	o := newSharedObject(newPod("a", "1"), new(atomic.Int64))
	accessor, err := meta.Accessor(o)
	if err != nil || accessor.GetName() != "a" {
		t.Fatalf("%v, %v", accessor, err)
	}
	accessor.SetResourceVersion("7")
	o.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	toPod(t, o).Labels["l"] = "2"
	toPod(t, o.DeepCopyObject()).Labels["l"] = "3"
	if diff := cmp.Diff(newPod("a", "1"), o.obj); diff != "" {
		t.Error(diff)
	}
}

func encodeWith(t testing.TB, encoder runtime.Encoder, obj runtime.Object) {
	t.Helper()
	if err := encoder.Encode(obj, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestAnEventKnowsWhatItReplacedWhileItIsInTheRing(t *testing.T) {
	f := newFixture(t, func(o *LogOptions, _ *Options) { o.Window = 2 })
	f.set(t, "a", "1")
	created := f.log.entries[0].shared
	if got := created.ShallowPrevious(); got != nil {
		t.Errorf("a new object replaced %v", got)
	}
	f.set(t, "a", "2")
	changed := f.log.entries[0].shared
	if got := toPod(t, changed.ShallowPrevious()); got.Labels["l"] != "1" {
		t.Errorf("label 2 replaced %v", got.Labels)
	}
	if got := toPod(t, changed.ShallowCopy()); got.Labels["l"] != "2" {
		t.Errorf("the object itself has %v", got.Labels)
	}
	f.set(t, "b", "1")
	f.set(t, "b", "2")
	if got := changed.ShallowPrevious(); got != nil {
		t.Errorf("%v is kept after its event", got)
	}
}
