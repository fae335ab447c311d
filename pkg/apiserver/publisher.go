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
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/history"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/metrics"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/catalogentry"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/option"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
)

// The logs of a journal.
const (
	imageLog = iota
	entryLog
	optionLog
)

// publisher puts what the inventory finds into the journal.
type publisher struct {
	journal *history.Journal
	metrics *metrics.Recorder
}

var _ inventory.Publisher = publisher{}

// PublishImage makes image the current object of that name, or removes it where image is nil.
func (p publisher) PublishImage(name string, image *images.WorkerImage) error {
	if err := p.journal.Found(imageLog, imageKey(name), following(image, projection.ImageAfter)); err != nil {
		return err
	}
	p.metrics.PublishedImage(name, image)
	return nil
}

// PublishEntry makes entry the current object of that name, or removes it where entry is nil.
func (p publisher) PublishEntry(name string, entry *images.CatalogEntry) error {
	if err := p.journal.Found(entryLog, entryKey(name), following(entry, projection.EntryAfter)); err != nil {
		return err
	}
	p.metrics.PublishedEntry(name, entry)
	return nil
}

// PublishOption makes option the current one of its name.
func (p publisher) PublishOption(o *images.Option) error {
	return p.journal.Found(optionLog, optionKey(o), following(o, optionAfter))
}

// Ready opens the logs to requests, once they have a history.
func (p publisher) Ready() {
	if err := p.journal.Complete(); err != nil {
		utilruntime.HandleError(fmt.Errorf("publish what was found: %w", err))
	}
}

// following returns what makes the object that is published next: a copy, since a log puts its version on what it
// is given.
func following[O any, P interface {
	*O
	runtime.Object
}](object P, after func(published, object P) P) history.Object {
	if object == nil {
		return nil
	}
	return func(published runtime.Object) runtime.Object {
		if published, ok := published.(P); ok {
			return after(published, object)
		}
		own := *object
		return P(&own)
	}
}

func optionAfter(_, o *images.Option) *images.Option {
	own := *o
	return &own
}

func imageKey(name string) string       { return workerimage.KeyPrefix + "/" + name }
func entryKey(name string) string       { return catalogentry.KeyPrefix + "/" + name }
func optionKey(o *images.Option) string { return option.KeyPrefix + "/" + o.Namespace + "/" + o.Name }
