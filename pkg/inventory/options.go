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
	"maps"
	"slices"
	"time"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// offer is what forms offer of the images that are published.
type offer struct {
	platform  golden.ID
	namespace string
	// choices are those among the images, by name.
	choices map[string]projection.Choice
	// stale is true while what is published says something else than the choices do.
	stale       bool
	publishedAt time.Time
}

// newOffer returns the offer of a cluster without images, which is yet to be published.
func newOffer(platform golden.ID, namespace string) offer {
	return offer{platform: platform, namespace: namespace, choices: map[string]projection.Choice{}, stale: true}
}

// note takes up that an image was published, or removed where it is nil.
func (o *offer) note(name string, image *images.WorkerImage) {
	var next projection.Choice
	var isChoice bool
	if image != nil {
		next, isChoice = projection.ChoiceOf(image)
	}
	last, wasChoice := o.choices[name]
	if isChoice == wasChoice && next == last {
		return
	}
	o.stale = true
	if isChoice {
		o.choices[name] = next
	} else {
		delete(o.choices, name)
	}
}

// publish publishes the Options if they may have changed and their time has come, and returns when to try again
// although nothing changes; zero for never.
func (o *offer) publish(now time.Time, publish func(*images.Option) error) (again time.Time, err error) {
	if !o.stale {
		return time.Time{}, nil
	}
	if dueAt := o.publishedAt.Add(publishInterval); now.Before(dueAt) {
		return dueAt, nil
	}
	for _, option := range projection.Options(slices.Collect(maps.Values(o.choices)), o.platform, o.namespace) {
		if err := publish(option); err != nil {
			return now.Add(publishInterval), err
		}
	}
	o.stale, o.publishedAt = false, now
	return time.Time{}, nil
}
