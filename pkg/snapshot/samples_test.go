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

package snapshot

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

const samples = "../../artifacts/samples/snapshot"

// published is a Publisher that keeps what is current.
type published struct {
	mu      sync.Mutex
	ready   bool
	images  map[string]*images.WorkerImage
	entries map[string]*images.CatalogEntry
}

func (*published) PublishOption(*images.Option) error { return nil }

func (p *published) PublishEntry(name string, entry *images.CatalogEntry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if entry == nil {
		delete(p.entries, name)
	} else {
		p.entries[name] = entry
	}
	return nil
}

func (p *published) PublishImage(name string, image *images.WorkerImage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if image == nil {
		delete(p.images, name)
	} else {
		p.images[name] = image
	}
	return nil
}

func (p *published) Ready() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = true
}

// publishedOf returns what a snapshot amounts to.
func publishedOf(t *testing.T, paths ...string) *published {
	t.Helper()
	s, err := Open(t.Context(), paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &published{images: map[string]*images.WorkerImage{}, entries: map[string]*images.CatalogEntry{}}
	synctest.Test(t, func(t *testing.T) {
		inv := inventory.New(inventory.Config{
			Sources:          s.Sources(),
			GoldensNamespace: "cozy-public",
			Platform: golden.ID{
				SchematicID: "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
				Version:     "v1.13.6",
			},
			Catalog:    types.NamespacedName{Namespace: "cozy-public", Name: "worker-image-catalog"},
			CatalogKey: "catalog.yaml",
			Publisher:  out,
			Clock:      clock.RealClock{},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { inv.Run(ctx) })
		synctest.Wait()
		cancel()
		running.Wait()
	})
	if !out.ready {
		t.Fatal("the snapshot was not read")
	}
	return out
}

func TestTheSamplesShowEveryPhaseAndEveryVerdict(t *testing.T) {
	phases, verdicts := map[images.WorkerImagePhase]int{}, map[string]string{}
	for _, image := range publishedOf(t, samples).images {
		phases[image.Status.Phase]++
		for _, p := range image.Status.Pools {
			verdicts[p.Namespace+"/"+p.Name] = p.Reason
		}
	}
	wantPhases := map[images.WorkerImagePhase]int{
		images.WorkerImagePending:     1,
		images.WorkerImageImporting:   4,
		images.WorkerImageReady:       4,
		images.WorkerImageFailed:      1,
		images.WorkerImageTerminating: 1,
	}
	if diff := cmp.Diff(wantPhases, phases); diff != "" {
		t.Error(diff)
	}
	wantVerdicts := map[string]string{
		"tenant-a/k1-any":    "StorageClassMatch",
		"tenant-a/k1-gpu":    "GoldenImporting",
		"tenant-a/k1-md0":    "StorageClassMatch",
		"tenant-a/k1-old":    "StorageClassMatch",
		"tenant-b/web-auto":  "StorageClassMatch",
		"tenant-b/web-both":  "InvalidSelection",
		"tenant-b/web-edge":  "HostAssistedCopy",
		"tenant-b/web-md0":   "StorageClassMismatch",
		"tenant-b/web-next":  "GoldenFailing",
		"tenant-b/web-tiny":  "DiskTooSmall",
		"tenant-c/ai-iscsi":  "StorageClassUnknown",
		"tenant-c/ai-md0":    "GoldenFailed",
		"tenant-c/ai-mirror": "GoldenSizeUnknown",
		"tenant-c/ai-old":    "GoldenTerminating",
	}
	if diff := cmp.Diff(wantVerdicts, verdicts); diff != "" {
		t.Error(diff)
	}
}

func TestTheSamplesShowWorkersOnTheirWay(t *testing.T) {
	image := publishedOf(t, samples).images["talos-worker-ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515-v1.13.6"]
	i := slices.IndexFunc(image.Status.Pools, func(p images.PoolStatus) bool { return p.Name == "k1-md0" })
	if i < 0 {
		t.Fatalf("no pool k1-md0 in %v", image.Status.Pools)
	}
	if diff := cmp.Diff(images.DiskCounts{Cloned: 3, Cloning: 1}, image.Status.Pools[i].Disks); diff != "" {
		t.Error(diff)
	}
}

func TestTheSamplesShowEveryPhaseOfAnEntryAndEveryAnswerOfTheCatalog(t *testing.T) {
	out := publishedOf(t, samples)
	entries, synced := map[images.CatalogEntryPhase]int{}, map[string]int{}
	for _, entry := range out.entries {
		entries[entry.Status.Phase]++
	}
	for _, image := range out.images {
		synced[meta.FindStatusCondition(image.Status.Conditions, images.ConditionCatalogSynced).Reason]++
	}
	wantEntries := map[images.CatalogEntryPhase]int{
		images.CatalogEntryAvailable: 1,
		images.CatalogEntryMissing:   1,
		images.CatalogEntryInvalid:   1,
		"Ready":                      4,
		"Importing":                  4,
		"Pending":                    1,
		"Failed":                     1,
		"Terminating":                1,
	}
	if diff := cmp.Diff(wantEntries, entries); diff != "" {
		t.Errorf("unexpected entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"Synced": 8, "Drift": 1, "NotDeclared": 2}, synced); diff != "" {
		t.Errorf("unexpected answers (-want +got):\n%s", diff)
	}
}

func TestTheSamplesOfTheStackShowWhatAnEntryAloneCanBe(t *testing.T) {
	phases := map[images.CatalogEntryPhase]int{}
	for _, entry := range publishedOf(t, "../../artifacts/samples/stack").entries {
		if !entry.Status.Materialized {
			phases[entry.Status.Phase]++
		}
	}
	want := map[images.CatalogEntryPhase]int{images.CatalogEntryAvailable: 1, images.CatalogEntryMissing: 1, images.CatalogEntryInvalid: 1}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Errorf("unexpected entries (-want +got):\n%s", diff)
	}
}
