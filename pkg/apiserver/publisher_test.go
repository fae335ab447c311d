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

package apiserver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/history"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/metrics"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/catalogentry"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

func newPublisher(t *testing.T) (publisher, []*memory.Log) {
	newLog := func() *memory.Log {
		return memory.NewLog(memory.LogOptions{First: 1, Attrs: storage.DefaultClusterScopedAttr})
	}
	logs := []*memory.Log{imageLog: newLog(), entryLog: newLog(), optionLog: newLog()}
	journal := history.NewJournal(1, logs...)
	if err := journal.Lead(); err != nil {
		t.Fatal(err)
	}
	return publisher{journal, metrics.NewRecorder()}, logs
}

// The inventory compares the next object with the one that it published last.
func TestPublishingAnObjectDoesNotModifyIt(t *testing.T) {
	p, _ := newPublisher(t)
	p.Ready()
	image := &images.WorkerImage{ObjectMeta: metav1.ObjectMeta{Name: "talos-worker-aaa-v1.13.6", UID: "1"}}
	entry := &images.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: "talos-worker-aaa-v1.13.6", UID: "2"}}
	choices := &images.Option{ObjectMeta: metav1.ObjectMeta{Namespace: "cozy-public", Name: "workerimage", UID: "3"}}
	imageBefore, entryBefore, choicesBefore := image.DeepCopy(), entry.DeepCopy(), choices.DeepCopy()
	if err := errors.Join(p.PublishImage(image.Name, image), p.PublishEntry(entry.Name, entry), p.PublishOption(choices)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(imageBefore, image); diff != "" {
		t.Errorf("the image changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(entryBefore, entry); diff != "" {
		t.Errorf("the entry changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(choicesBefore, choices); diff != "" {
		t.Errorf("the option changed (-before +after):\n%s", diff)
	}
}

func TestWhatIsGoneIsRemovedFromItsLogAlone(t *testing.T) {
	const name = "talos-worker-aaa-v1.13.6"
	p, logs := newPublisher(t)
	p.Ready()
	if err := errors.Join(
		p.PublishImage(name, &images.WorkerImage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}),
		p.PublishEntry(name, &images.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "2"}}),
		p.PublishImage(name, nil),
	); err != nil {
		t.Fatal(err)
	}
	if image, _ := logs[imageLog].Get(workerimage.KeyPrefix + "/" + name); image != nil {
		t.Errorf("the image is still there: %v", image)
	}
	if entry, _ := logs[entryLog].Get(catalogentry.KeyPrefix + "/" + name); entry == nil {
		t.Error("the entry is gone as well")
	}
}

func TestAllLogsOpenTogether(t *testing.T) {
	p, logs := newPublisher(t)
	if logs[imageLog].Ready() || logs[entryLog].Ready() || logs[optionLog].Ready() {
		t.Error("a log is open before all is published")
	}
	p.Ready()
	if !logs[imageLog].Ready() || !logs[entryLog].Ready() || !logs[optionLog].Ready() {
		t.Error("a log is closed although all is published")
	}
}

func TestWhatIsPublishedIsMeasured(t *testing.T) {
	const name = "talos-worker-aaa-v1.13.6"
	p, _ := newPublisher(t)
	p.Ready()
	registry := basemetrics.NewKubeRegistry()
	registry.CustomMustRegister(metrics.NewCollector(p.metrics, metrics.State{
		Sources:     func() []inventory.SourceHealth { return nil },
		Work:        func() inventory.Stats { return inventory.Stats{} },
		Certificate: func() []byte { return certificate(nil) },
	}))
	figures := func() (ready, matching float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				switch {
				case testutil.LabelsMatch(m, map[string]string{"phase": "Ready"}):
					ready = m.GetGauge().GetValue()
				case testutil.LabelsMatch(m, map[string]string{"reason": "StorageClassMatch"}) && family.GetName() == "workerimage_pools":
					matching = m.GetGauge().GetValue()
				}
			}
		}
		return ready, matching
	}
	image := &images.WorkerImage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}, Status: images.WorkerImageStatus{Phase: images.WorkerImageReady}}
	entry := &images.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "2"}, Status: images.CatalogEntryStatus{
		Pools: []images.PoolStatus{{Reason: "StorageClassMatch"}, {Reason: "StorageClassMatch"}},
	}}
	if err := errors.Join(p.PublishImage(name, image), p.PublishEntry(name, entry)); err != nil {
		t.Fatal(err)
	}
	if ready, matching := figures(); ready != 1 || matching != 2 {
		t.Errorf("%v images and %v pools", ready, matching)
	}
	if err := errors.Join(p.PublishImage(name, nil), p.PublishEntry(name, nil)); err != nil {
		t.Fatal(err)
	}
	if ready, matching := figures(); ready != 0 || matching != 0 {
		t.Errorf("%v images and %v pools are left of nothing", ready, matching)
	}
}
