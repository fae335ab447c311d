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
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// publisher puts what the inventory finds into the log.
type publisher struct {
	log *memory.Log
}

var _ inventory.Publisher = publisher{}

// Publish makes image the current object of that name, or removes it where image is nil.
func (p publisher) Publish(name string, image *images.WorkerImage) error {
	key := workerimage.KeyPrefix + "/" + name
	if image == nil {
		_, err := p.log.Remove(key)
		return err
	}
	// The log puts its version on what it is given.
	own := *image
	_, err := p.log.Apply(key, &own)
	return err
}

// Ready opens the log to requests.
func (p publisher) Ready() { p.log.SetReady(true) }
