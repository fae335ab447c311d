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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/metrics"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/catalogentry"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/option"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// publisher puts what the inventory finds into the logs.
type publisher struct {
	images, entries, options *memory.Log
	metrics                  *metrics.Recorder
}

var _ inventory.Publisher = publisher{}

// PublishImage makes image the current object of that name, or removes it where image is nil.
func (p publisher) PublishImage(name string, image *images.WorkerImage) error {
	if err := publish(p.images, workerimage.KeyPrefix+"/"+name, image); err != nil {
		return err
	}
	p.metrics.PublishedImage(name, image)
	return nil
}

// PublishEntry makes entry the current object of that name, or removes it where entry is nil.
func (p publisher) PublishEntry(name string, entry *images.CatalogEntry) error {
	if err := publish(p.entries, catalogentry.KeyPrefix+"/"+name, entry); err != nil {
		return err
	}
	p.metrics.PublishedEntry(name, entry)
	return nil
}

// PublishOption makes option the current one of its name.
func (p publisher) PublishOption(o *images.Option) error {
	return publish(p.options, option.KeyPrefix+"/"+o.Namespace+"/"+o.Name, o)
}

func publish[O any, P interface {
	*O
	runtime.Object
}](log *memory.Log, key string, object P) error {
	if object == nil {
		_, err := log.Remove(key)
		return err
	}
	// The log puts its version on what it is given.
	own := *object
	_, err := log.Apply(key, P(&own))
	return err
}

// Ready opens the logs to requests.
func (p publisher) Ready() {
	p.images.SetReady(true)
	p.entries.SetReady(true)
	p.options.SetReady(true)
}
