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

package view_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

// reads is what is measured.
type reads interface {
	rest.Lister
	rest.Watcher
}

// benchmarkCallers measures what each caller costs, and what it would cost without a view at all. The authorizer
// answers at once: what a question costs in a cluster is the API server's answer, unless it is cached.
func benchmarkCallers(b *testing.B, measure func(ctx context.Context, b *testing.B, f *fixture, served reads, namespaces int)) {
	for _, namespaces := range []int{1, 100, 1000} {
		for _, caller := range []string{"no view", "operator", "tenant"} {
			b.Run(fmt.Sprintf("%d namespaces/%s", namespaces, caller), func(b *testing.B) {
				f := newFixture(b)
				f.authorizer.grant("operator", "*")
				f.authorizer.grant("tenant", "tenant-0000")
				f.authorizer.onlyCount = true
				for i := range 50 {
					f.set(b, "v1.0."+strconv.Itoa(i), poolsIn(namespaces, 1)...)
				}
				served := reads(f.REST)
				if caller == "no view" {
					served = f.serve(b, nil)
				}
				measure(as(b, caller), b, f, served, namespaces)
			})
		}
	}
}

// poolsIn returns a pool in each namespace. The first one has that many disks.
func poolsIn(namespaces, disks int) []string {
	out := []string{fmt.Sprintf("tenant-0000/md0=%d", disks)}
	for i := 1; i < namespaces; i++ {
		out = append(out, fmt.Sprintf("tenant-%04d/md0", i))
	}
	return out
}

// newEncoder writes what a client is sent.
func newEncoder() runtime.Encoder {
	codecs := serializer.NewCodecFactory(newScheme())
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion)
}

// BenchmarkList is the list of 50 images, encoded.
func BenchmarkList(b *testing.B) {
	benchmarkCallers(b, func(ctx context.Context, b *testing.B, f *fixture, served reads, _ int) {
		encoder := newEncoder()
		b.ReportAllocs()
		for b.Loop() {
			list, err := served.List(ctx, &internalversion.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
			if err := encoder.Encode(list, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(f.authorizer.count.Load())/float64(b.N), "questions/op")
	})
}

// BenchmarkFanOut is one change that the caller sees until 200 of its watches have it, encoded.
func BenchmarkFanOut(b *testing.B) {
	const watches = 200
	benchmarkCallers(b, func(ctx context.Context, b *testing.B, f *fixture, served reads, namespaces int) {
		encoder := newEncoder()
		var received, ended sync.WaitGroup
		ctx, cancel := context.WithCancel(ctx)
		for range watches {
			w, err := served.Watch(ctx, &internalversion.ListOptions{ResourceVersion: f.resourceVersion()})
			if err != nil {
				b.Fatal(err)
			}
			ended.Go(func() { receiveAll(b, w, encoder, &received) })
		}
		change := func(i int) {
			received.Add(watches)
			f.set(b, "v1.0.7", poolsIn(namespaces, i)...)
			received.Wait()
		}
		change(2) // all questions have been asked
		b.ReportAllocs()
		for i := 3; b.Loop(); i++ {
			change(i)
		}
		b.ReportMetric(float64(f.authorizer.count.Load())/watches, "questions/watch")
		cancel()
		ended.Wait()
	})
}

func receiveAll(b *testing.B, w watch.Interface, encoder runtime.Encoder, received *sync.WaitGroup) {
	defer w.Stop()
	for e := range w.ResultChan() {
		if err := encoder.Encode(e.Object, io.Discard); err != nil {
			b.Error(err)
		}
		received.Done()
	}
}

// BenchmarkHiddenChange is a change that the caller does not see and a small one that it does, until 200 of its
// watches have passed over the one and have the other.
func BenchmarkHiddenChange(b *testing.B) {
	const watches = 200
	for _, namespaces := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d namespaces", namespaces), func(b *testing.B) {
			f := newFixture(b)
			f.authorizer.grant("tenant", "tenant-0000")
			f.authorizer.onlyCount = true
			f.set(b, "v1.0.0", poolsIn(namespaces, 1)...)
			encoder := newEncoder()
			var received, ended sync.WaitGroup
			ctx, cancel := context.WithCancel(as(b, "tenant"))
			for range watches {
				w, err := f.Watch(ctx, &internalversion.ListOptions{ResourceVersion: f.resourceVersion()})
				if err != nil {
					b.Fatal(err)
				}
				ended.Go(func() { receiveAll(b, w, encoder, &received) })
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.set(b, "v1.0.0", append(poolsIn(namespaces, 1), fmt.Sprintf("tenant-9999/md0=%d", i))...)
				received.Add(watches)
				f.set(b, "v1.0.1", fmt.Sprintf("tenant-0000/md0=%d", i))
				received.Wait()
			}
			cancel()
			ended.Wait()
		})
	}
}
