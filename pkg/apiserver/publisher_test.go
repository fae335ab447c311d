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

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/catalogentry"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

func newPublisher() publisher {
	newLog := func() *memory.Log {
		return memory.NewLog(memory.LogOptions{First: 1, Attrs: storage.DefaultClusterScopedAttr})
	}
	return publisher{images: newLog(), entries: newLog(), options: newLog()}
}

// The inventory compares the next object with the one that it published last.
func TestPublishingAnObjectDoesNotModifyIt(t *testing.T) {
	p := newPublisher()
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
	p := newPublisher()
	if err := errors.Join(
		p.PublishImage(name, &images.WorkerImage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}),
		p.PublishEntry(name, &images.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "2"}}),
		p.PublishImage(name, nil),
	); err != nil {
		t.Fatal(err)
	}
	if image, _ := p.images.Get(workerimage.KeyPrefix + "/" + name); image != nil {
		t.Errorf("the image is still there: %v", image)
	}
	if entry, _ := p.entries.Get(catalogentry.KeyPrefix + "/" + name); entry == nil {
		t.Error("the entry is gone as well")
	}
}

func TestAllLogsOpenTogether(t *testing.T) {
	p := newPublisher()
	if p.images.Ready() || p.entries.Ready() || p.options.Ready() {
		t.Error("a log is open before all is published")
	}
	p.Ready()
	if !p.images.Ready() || !p.entries.Ready() || !p.options.Ready() {
		t.Error("a log is closed although all is published")
	}
}
