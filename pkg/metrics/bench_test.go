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

package metrics

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
)

// BenchmarkGather reads all metrics of 50 images. The number of their pools must not matter.
func BenchmarkGather(b *testing.B) {
	for _, pools := range []int{50, 5000} {
		b.Run(fmt.Sprintf("%d-pools", pools), func(b *testing.B) {
			r := NewRecorder()
			for i := range 50 {
				name := fmt.Sprintf("talos-worker-a%d-v1.13.6", i)
				image := &images.WorkerImage{Status: images.WorkerImageStatus{Phase: images.WorkerImageReady}}
				for _, kind := range conditionTypes {
					image.Status.Conditions = append(image.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
				}
				of := &images.CatalogEntry{Status: images.CatalogEntryStatus{Pools: make([]images.PoolStatus, pools/50)}}
				for k := range of.Status.Pools {
					of.Status.Pools[k].Reason = pool.ReasonStorageClassMatch
				}
				r.PublishedImage(name, image)
				r.PublishedEntry(name, of)
			}
			registry := metrics.NewKubeRegistry()
			registry.CustomMustRegister(NewCollector(r, nothing()))
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
