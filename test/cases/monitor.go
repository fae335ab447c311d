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

package cases

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

// Monitor checks what is published against the rules of a case.
type Monitor struct {
	images map[string]*v1alpha1.WorkerImage
	rules  []rule
}

// NewMonitor returns a monitor of the answers that are made from in.
func NewMonitor(c *Case, in *Inputs) *Monitor {
	m := &Monitor{images: map[string]*v1alpha1.WorkerImage{}}
	for _, rule := range rules(c, in) {
		if slices.ContainsFunc(c.Want.Never, func(n Never) bool { return n.ID == rule.id }) {
			m.rules = append(m.rules, rule)
		}
	}
	return m
}

// Deliver takes an event of the watch and returns the rules that it breaks.
func (m *Monitor) Deliver(kind watch.EventType, image *v1alpha1.WorkerImage) []string {
	before := m.images[image.Name]
	if kind == watch.Deleted {
		delete(m.images, image.Name)
	} else {
		m.images[image.Name] = image
	}
	var broken []string
	for _, rule := range m.rules {
		if rule.event != nil {
			broken = append(broken, rule.broken(rule.event(kind, before, image))...)
		}
	}
	if kind == watch.Deleted {
		return broken
	}
	return append(broken, m.check(image)...)
}

// Check returns the rules that the objects which are there now break.
func (m *Monitor) Check() []string {
	var broken []string
	for _, name := range slices.Sorted(maps.Keys(m.images)) {
		broken = append(broken, m.check(m.images[name])...)
	}
	return broken
}

// End returns the rules that are broken when the case is over.
func (m *Monitor) End() []string {
	var broken []string
	for _, rule := range m.rules {
		if rule.end != nil {
			broken = append(broken, rule.broken(rule.end())...)
		}
	}
	return broken
}

// Image returns the object of that name that is there now, or nil.
func (m *Monitor) Image(name string) *v1alpha1.WorkerImage { return m.images[name] }

// Images returns the objects that are there now, by name.
func (m *Monitor) Images() map[string]*v1alpha1.WorkerImage { return maps.Clone(m.images) }

func (m *Monitor) check(image *v1alpha1.WorkerImage) []string {
	var broken []string
	for _, rule := range m.rules {
		if rule.image != nil {
			broken = append(broken, rule.broken(rule.image(image))...)
		}
	}
	return broken
}

func (r rule) broken(findings []string) []string {
	out := make([]string, 0, len(findings))
	for _, finding := range findings {
		out = append(out, fmt.Sprintf("%s: %s", r.id, finding))
	}
	return out
}
