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
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// image is what the metrics tell of one image.
type image struct {
	phase      string
	conditions []condition
	// unusedSince is zero while the image is in use, or may be.
	unusedSince time.Time
}

type condition struct{ kind, status, reason string }

// imageOf returns the figures of an image.
func imageOf(o *images.WorkerImage) image {
	out := image{phase: phases.fold(string(o.Status.Phase))}
	for _, c := range o.Status.Conditions {
		out.conditions = append(out.conditions, condition{
			kind:   conditionTypes.fold(c.Type),
			status: conditionStatuses.fold(string(c.Status)),
			reason: conditionReasons.fold(c.Reason),
		})
		if c.Type == images.ConditionInUse && c.Status == metav1.ConditionFalse {
			out.unusedSince = c.LastTransitionTime.Time
		}
	}
	return out
}

// verdictsOn counts pools by the reason of the verdict on them. Disks whose pool does not ask for the image
// are no pool.
func verdictsOn(pools []images.PoolStatus) map[string]int {
	out := map[string]int{}
	for i := range pools {
		if pools[i].Reason != projection.ReasonNotSelected {
			out[verdicts.fold(pools[i].Reason)]++
		}
	}
	return out
}

// published are the figures of what is published now. Every pool that asks for an image is in one entry,
// whether there is such an image or not.
type published struct {
	mu      sync.Mutex
	images  map[string]image
	entries map[string]map[string]int
}

func newPublished() published {
	return published{images: map[string]image{}, entries: map[string]map[string]int{}}
}

func (p *published) setImage(name string, o *images.WorkerImage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o == nil {
		delete(p.images, name)
		return
	}
	p.images[name] = imageOf(o)
}

func (p *published) setEntry(name string, o *images.CatalogEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o == nil {
		delete(p.entries, name)
		return
	}
	p.entries[name] = verdictsOn(o.Status.Pools)
}

// all returns the images by name, which the caller may keep, and the number of pools by verdict.
func (p *published) all() (byName map[string]image, pools map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pools = map[string]int{}
	for _, entry := range p.entries {
		for reason, n := range entry {
			pools[reason] += n
		}
	}
	return maps.Clone(p.images), pools
}

// byPhase counts images.
func byPhase(all map[string]image) map[string]int {
	out := map[string]int{}
	for _, i := range all {
		out[i.phase]++
	}
	return out
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
