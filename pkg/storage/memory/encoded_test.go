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
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// encoders are those that a server may choose from, by identifier.
func encoders(t testing.TB) map[runtime.Identifier]runtime.Encoder {
	t.Helper()
	scheme := listScheme(t)
	codecs := serializer.NewCodecFactory(scheme)
	all := map[runtime.Identifier]runtime.Encoder{"cbor": cbor.NewSerializer(scheme, scheme)}
	for id, options := range map[runtime.Identifier]json.SerializerOptions{
		"json":          {},
		"streamed json": {StreamingCollectionsEncoding: true},
		"indented json": {Pretty: true},
		"yaml":          {Yaml: true},
	} {
		all[id] = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, options)
	}
	for id, s := range all {
		all[id] = codecs.EncoderForVersion(s, examplev1.SchemeGroupVersion)
	}
	return all
}

// listScheme converts lists of pods, too.
func listScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := exampleScheme(t)
	scheme.AddKnownTypes(example.SchemeGroupVersion, &example.PodList{})
	scheme.AddKnownTypes(examplev1.SchemeGroupVersion, &examplev1.PodList{})
	err := scheme.AddConversionFunc((*example.PodList)(nil), (*examplev1.PodList)(nil), func(a, b any, scope conversion.Scope) error {
		in, out := a.(*example.PodList), b.(*examplev1.PodList)
		out.ListMeta, out.Items = in.ListMeta, make([]examplev1.Pod, len(in.Items))
		for i := range in.Items {
			if err := examplev1.Convert_example_Pod_To_v1_Pod(&in.Items[i], &out.Items[i], scope); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Guards: that joining writes what the encoder writes, byte by byte, whatever changed since the list before.
func TestAnEncodedListIsWhatTheEncoderWrites(t *testing.T) {
	all := encoders(t)
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newFixture(t, func(l *LogOptions, _ *Options) { l.First = 1 })
			f.log.counterBits = 5 // epochs end, too
			random := rand.New(rand.NewPCG(seed, 0))
			for range 60 {
				change(t, f, random)
				for id, encoder := range all {
					if random.IntN(2) == 0 {
						checkEncoded(t, f, id, encoder)
					}
				}
			}
		})
	}
}

// change makes some changes, or none.
func change(t *testing.T, f *fixture, random *rand.Rand) {
	t.Helper()
	for range random.IntN(3) {
		name := fmt.Sprintf("p%d", random.IntN(6))
		if random.IntN(3) == 0 {
			f.remove(t, name)
			continue
		}
		pod := newPod(name, awkward[random.IntN(len(awkward))])
		pod.Annotations = map[string]string{awkward[random.IntN(len(awkward))]: awkward[random.IntN(len(awkward))]}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: name, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)}}
		if random.IntN(2) == 0 {
			pod.DeletionGracePeriodSeconds = ptr.To(random.Int64N(100))
		}
		apply(t, f.log, podKey(name), pod)
	}
}

// awkward are texts that look like what is around the items of a list.
var awkward = []string{"", "a", `"items":[`, "]}\n", "items: []\n", "<&>\u2028", `\"`, "{", "é\x00"}

func checkEncoded(t *testing.T, f *fixture, id runtime.Identifier, encoder runtime.Encoder) {
	t.Helper()
	list, err := f.list(t.Context(), listEverything)
	if err != nil {
		t.Fatal(err)
	}
	encoded := f.Encoded(list)
	if encoded == nil {
		t.Fatal("a list of everything is not shared")
	}
	got, err := encoded.Encode(id, encoder.Encode)
	if err != nil {
		t.Fatal(err)
	}
	want, err := runtime.Encode(encoder, list)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Body(), want) {
		t.Errorf("%s:\n got %s\nwant %s", id, got.Body(), want)
	}
}

func TestWhatHasNotChangedIsNotEncodedAgain(t *testing.T) {
	f := newFixture(t)
	encoder := exampleEncoder(t)
	var lists, items int
	count := func(obj runtime.Object, w io.Writer) error {
		lists, items = lists+1, items+len(obj.(*example.PodList).Items)
		return encoder.Encode(obj, w)
	}
	for i := range 10 {
		f.set(t, fmt.Sprintf("p%d", i), "1")
	}
	for _, step := range []struct {
		name         string
		change       func()
		lists, items int
	}{
		{"the first list", func() {}, 11, 10},
		{"nothing changed", func() {}, 0, 0},
		{"one changed", func() { f.set(t, "p3", "2") }, 2, 1},
		{"one is gone", func() { f.remove(t, "p4") }, 1, 0},
		{"one is new", func() { f.set(t, "p4", "3") }, 2, 1},
	} {
		step.change()
		lists, items = 0, 0
		list, err := f.list(t.Context(), listEverything)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Encoded(list).Encode("json", count); err != nil {
			t.Fatal(err)
		}
		if lists != step.lists || items != step.items {
			t.Errorf("%s: %d lists with %d items were encoded", step.name, lists, items)
		}
	}
}

func TestOnlyAListOfEverythingAsItIsNowIsShared(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	before := f.set(t, "b", "2")
	full, err := f.list(t.Context(), listEverything)
	if err != nil {
		t.Fatal(err)
	}
	if f.Encoded(full) == nil {
		t.Error("a list of everything is not shared")
	}
	limited := storage.Everything
	limited.Limit = 1
	for name, opts := range map[string]storage.ListOptions{
		"one page":       {Predicate: limited},
		"a selection":    {Predicate: selecting("2")},
		"another object": {Predicate: selecting("3")},
	} {
		list, err := f.list(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if f.Encoded(list) != nil {
			t.Errorf("%s is shared", name)
		}
	}
	shard := full.DeepCopy()
	shard.ShardInfo = &metav1.ShardInfo{}
	if f.Encoded(shard) != nil {
		t.Error("a shard is shared")
	}
	f.set(t, "b", "3")
	if f.Encoded(full) != nil {
		t.Errorf("the list of %s is shared after a change", before)
	}
}

func TestAListThatCannotBeEncodedIsNotEmpty(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	list, err := f.list(t.Context(), listEverything)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	for range 2 {
		if _, err := f.Encoded(list).Encode("failing", func(runtime.Object, io.Writer) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("the error is %v", err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = f.Encoded(list).Encode("panicking", func(runtime.Object, io.Writer) error { panic("") })
	}()
	if _, err := f.Encoded(list).Encode("panicking", exampleEncoder(t).Encode); err == nil {
		t.Error("an encoder that panicked wrote a list")
	}
}

// Guards: that readers of all versions share what they may, and modify nothing.
func TestListsAreEncodedWhileEverythingChanges(t *testing.T) {
	f := newFixture(t)
	var all sync.WaitGroup
	var shared atomic.Int64
	done := make(chan struct{})
	for reader := range 4 {
		id := runtime.Identifier(fmt.Sprint(reader % 2))
		encoder := exampleEncoder(t)
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				list, err := f.list(t.Context(), listEverything)
				if err != nil {
					t.Error(err)
					return
				}
				encoded := f.Encoded(list)
				if encoded == nil {
					continue
				}
				shared.Add(1)
				got, err := encoded.Encode(id, encoder.Encode)
				want, _ := runtime.Encode(encoder, list)
				if err != nil || !bytes.Equal(got.Body(), want) || len(got.Gzip()) == 0 {
					t.Errorf("%v\n got %s\nwant %s", err, got.Body(), want)
					return
				}
			}
		})
	}
	for i := range 2000 {
		f.set(t, fmt.Sprintf("p%d", i%7), fmt.Sprint(i))
	}
	for shared.Load() < 100 && !t.Failed() {
		f.set(t, "p0", fmt.Sprint(shared.Load()))
	}
	close(done)
	all.Wait()
}

func exampleEncoder(t testing.TB) runtime.Encoder {
	t.Helper()
	scheme := listScheme(t)
	plain := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{StreamingCollectionsEncoding: true})
	return serializer.NewCodecFactory(scheme).EncoderForVersion(plain, examplev1.SchemeGroupVersion)
}
