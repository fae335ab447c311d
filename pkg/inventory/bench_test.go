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

package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

const (
	fewDisks  = 1_000
	manyDisks = 100_000
	// poolsOfAnImage is the same whatever the number of disks, since a pool is a part of the image.
	poolsOfAnImage = 10
)

// discard is a Publisher that nobody reads.
type discard struct{}

func (discard) PublishImage(string, *images.WorkerImage) error  { return nil }
func (discard) PublishEntry(string, *images.CatalogEntry) error { return nil }
func (discard) PublishOption(*images.Option) error              { return nil }
func (discard) Ready()                                          {}

// BenchmarkDiskEvent measures what it costs until the image of a disk that changed is published, from the
// object as a watch delivers it. The ratio compares a cluster with many disks to one with few.
func BenchmarkDiskEvent(b *testing.B) {
	few, many := newDiskCluster(b, fewDisks), newDiskCluster(b, manyDisks)
	var fewTimes, manyTimes []time.Duration
	for b.Loop() {
		fewTimes = append(fewTimes, few.event(b))
		manyTimes = append(manyTimes, many.event(b))
	}
	fewTime, manyTime := median(fewTimes), median(manyTimes)
	b.ReportMetric(float64(fewTime.Nanoseconds()), "ns/event-1k")
	b.ReportMetric(float64(manyTime.Nanoseconds()), "ns/event-100k")
	b.ReportMetric(float64(manyTime)/float64(fewTime), "ratio")
	b.ReportMetric(float64(many.inventory.Stats().Projections-many.projections)/float64(b.N), "projections/event")
}

// median does not mind that others use the machine as well.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// diskCluster is an Inventory that knows a number of disks, driven without its goroutines.
type diskCluster struct {
	ctx         context.Context //nolint:containedctx // one for all events
	clock       *clocktesting.FakeClock
	inventory   *Inventory
	disks       int
	next        int
	projections uint64
}

func newDiskCluster(b *testing.B, disks int) *diskCluster {
	b.Helper()
	now := clocktesting.NewFakeClock(start)
	i := New(Config{GoldensNamespace: goldens, Platform: platform, Publisher: discard{}, Clock: now})
	for _, s := range i.sources {
		if err := s.store.Replace(nil, ""); err != nil {
			b.Fatal(err)
		}
	}
	c := &diskCluster{ctx: quiet(b), clock: now, inventory: i, disks: disks}
	must(b, i.dataVolumes.store.Add(goldenObject(goldA)))
	for n := range poolsOfAnImage {
		must(b, i.pools.store.Add(poolObject("tenant-a", fmt.Sprintf("k1-md%d", n), imageID(goldA))))
	}
	for n := range disks {
		must(b, i.dataVolumes.store.Add(c.disk(n, "Succeeded")))
	}
	i.worker.pass(c.ctx)
	c.projections = i.Stats().Projections
	return c
}

// quiet is a context whose log nobody reads.
func quiet(b *testing.B) context.Context { return klog.NewContext(b.Context(), klog.Logger{}) }

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (c *diskCluster) disk(n int, at string) *unstructured.Unstructured {
	return diskObject("tenant-a", fmt.Sprintf("disk-system-kubernetes-k1-md0-%06d", n), goldA,
		fmt.Sprintf("kubernetes-k1-md%d", n%poolsOfAnImage), phase(at), set(int64(0), "status", "restartCount"))
}

// event moves some disk out of Succeeded or back, and is how long that took until it was published.
func (c *diskCluster) event(b *testing.B) time.Duration {
	b.Helper()
	const stride = 7919 // a prime, so that neighbours in time are none in memory
	n, at := c.next/2*stride%c.disks, "CSICloneInProgress"
	if c.next%2 == 1 {
		at = "Succeeded"
	}
	c.next++
	object := c.disk(n, at)
	c.clock.Step(publishInterval)
	start := time.Now()
	must(b, c.inventory.dataVolumes.store.Update(object))
	c.inventory.worker.pass(c.ctx)
	return time.Since(start)
}

// BenchmarkMemoryPerDisk measures the live heap that a worker disk and its claim take, and compares it to
// the same number of typed DataVolumes in a map by name.
func BenchmarkMemoryPerDisk(b *testing.B) {
	for b.Loop() {
		empty := liveHeap()
		full := typedDisks(b)
		typed := liveHeap() - empty
		runtime.KeepAlive(full)

		empty = liveHeap()
		i := newIdle()
		for raw := range disksAsJSON(b) {
			u := &unstructured.Unstructured{}
			must(b, u.UnmarshalJSON(raw))
			must(b, i.dataVolumes.store.Add(u))
			must(b, i.claims.store.Add(claimObject(u.GetNamespace(), u.GetName(), "replicated")))
		}
		i.index.takeDirty()
		slim := liveHeap() - empty
		runtime.KeepAlive(i)

		b.ReportMetric(float64(slim)/manyDisks, "bytes/disk")
		b.ReportMetric(float64(typed)/manyDisks, "bytes/typed-disk")
		b.ReportMetric(float64(typed)/float64(slim), "ratio")
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// typedDisk is a worker disk as CDI leaves it.
func typedDisk(number string) *cdiv1.DataVolume {
	name := "disk-system-kubernetes-k1-md0-" + number
	at := metav1.NewTime(start)
	condition := func(c cdiv1.DataVolumeConditionType, status corev1.ConditionStatus, reason, message string) cdiv1.DataVolumeCondition {
		return cdiv1.DataVolumeCondition{Type: c, Status: status, Reason: reason, Message: message, LastTransitionTime: at, LastHeartbeatTime: at}
	}
	return &cdiv1.DataVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "tenant-a",
			Name:              name,
			UID:               types.UID("549965c3-451e-4258-bd76-7a257c" + number),
			ResourceVersion:   "1" + number,
			Generation:        1,
			CreationTimestamp: at,
			Annotations: map[string]string{
				"cdi.kubevirt.io/cloneType":                   "csi-clone",
				"cdi.kubevirt.io/storage.usePopulator":        "true",
				"kubernetes-worker-image.cozystack.io/golden": goldA,
				"kubernetes-worker-image.cozystack.io/pool":   diskPoolA,
			},
		},
		Spec: cdiv1.DataVolumeSpec{
			ContentType: cdiv1.DataVolumeKubeVirt,
			Source:      &cdiv1.DataVolumeSource{PVC: &cdiv1.DataVolumeSourcePVC{Namespace: goldens, Name: goldA}},
			Storage:     &cdiv1.StorageSpec{StorageClassName: ptr.To("replicated")},
		},
		Status: cdiv1.DataVolumeStatus{
			ClaimName: name,
			Phase:     cdiv1.Succeeded,
			Progress:  "100.0%",
			Conditions: []cdiv1.DataVolumeCondition{
				condition(cdiv1.DataVolumeBound, "True", "Bound", "PVC "+name+" Bound"),
				condition(cdiv1.DataVolumeReady, "True", "", ""),
				condition(cdiv1.DataVolumeRunning, "False", "Completed", "Clone Complete"),
			},
		},
	}
}

// disksAsJSON returns worker disks as a server sends them.
func disksAsJSON(b *testing.B) iter.Seq[[]byte] {
	b.Helper()
	const number = "NUMBER"
	content, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(typedDisk(number))
	must(b, err)
	template, err := (&unstructured.Unstructured{Object: content}).MarshalJSON()
	must(b, err)
	return func(yield func([]byte) bool) {
		for n := range manyDisks {
			if !yield(bytes.ReplaceAll(template, []byte(number), fmt.Appendf(nil, "%06d", n))) {
				return
			}
		}
	}
}

func typedDisks(b *testing.B) map[types.NamespacedName]*cdiv1.DataVolume {
	b.Helper()
	disks := make(map[types.NamespacedName]*cdiv1.DataVolume, manyDisks)
	for raw := range disksAsJSON(b) {
		disk := &cdiv1.DataVolume{}
		must(b, json.Unmarshal(raw, disk))
		disks[types.NamespacedName{Namespace: disk.Namespace, Name: disk.Name}] = disk
	}
	return disks
}
