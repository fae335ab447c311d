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
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// newLargePod takes about 3 KiB when it is encoded.
func newLargePod(i int, note string) *example.Pod {
	pod := newPod(fmt.Sprintf("image-%05d", i), strconv.Itoa(i%10))
	pod.Annotations = map[string]string{"note": note}
	for c := range 20 {
		pod.Status.Conditions = append(pod.Status.Conditions, example.PodCondition{
			Type: example.PodConditionType(fmt.Sprintf("Condition-%d", c)), Status: "True", Reason: "Reason",
			Message: strings.Repeat("x", 60), LastTransitionTime: metav1.NewTime(started),
		})
	}
	return pod
}

func newBenchmarkFixture(b *testing.B, pods int) *fixture {
	f := newFixture(b)
	for i := range pods {
		pod := newLargePod(i, "")
		apply(b, f.log, podKey(pod.Name), pod)
	}
	return f
}

func BenchmarkList(b *testing.B) {
	for _, pods := range []int{200, 2000} {
		for name, opts := range map[string]storage.ListOptions{
			"all":        listEverything,
			"selected":   {Predicate: selecting("3")},
			"exact, old": {Predicate: storage.Everything, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		} {
			b.Run(fmt.Sprintf("%d %s", pods, name), func(b *testing.B) {
				f := newBenchmarkFixture(b, pods)
				if opts.ResourceVersionMatch != "" {
					opts.ResourceVersion = strconv.FormatUint(f.log.ResourceVersion()-100, 10)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := f.list(context.Background(), opts); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	f := newBenchmarkFixture(b, 200)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Get(context.Background(), podKey("image-00100"), storage.GetOptions{}, &example.Pod{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	for _, equal := range []bool{true, false} {
		b.Run(map[bool]string{true: "the same", false: "a change"}[equal], func(b *testing.B) {
			f := newBenchmarkFixture(b, 200)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				pod := newLargePod(7, "")
				if !equal {
					pod.Annotations["note"] = strconv.Itoa(i)
				}
				b.StartTimer()
				apply(b, f.log, podKey(pod.Name), pod)
			}
		})
	}
}

// BenchmarkFanOut is one change until 500 watchers have it, encoded.
func BenchmarkFanOut(b *testing.B) {
	const watchers = 500
	encoder := codec(b)
	for name, pred := range map[string]storage.SelectionPredicate{"all": storage.Everything, "selected": selecting("7")} {
		b.Run(fmt.Sprintf("%d %s", watchers, name), func(b *testing.B) {
			f := newBenchmarkFixture(b, 200)
			ctx, cancel := context.WithCancel(context.Background())
			var received, ended sync.WaitGroup
			for range watchers {
				w, err := f.Watch(ctx, "/pods", storage.ListOptions{
					Predicate: pred, Recursive: true, ResourceVersion: strconv.FormatUint(f.log.ResourceVersion(), 10),
				})
				if err != nil {
					b.Fatal(err)
				}
				ended.Go(func() { receiveAll(b, w, encoder, &received) })
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				received.Add(watchers)
				pod := newLargePod(7, strconv.Itoa(i))
				apply(b, f.log, podKey(pod.Name), pod)
				received.Wait()
			}
			cancel()
			ended.Wait()
		})
	}
}

func receiveAll(b *testing.B, w watch.Interface, encoder runtime.Encoder, received *sync.WaitGroup) {
	for e := range w.ResultChan() {
		if err := encoder.Encode(e.Object, io.Discard); err != nil {
			b.Error(err)
		}
		received.Done()
	}
}
