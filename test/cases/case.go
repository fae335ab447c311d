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
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"
)

//go:embed testdata
var testdata embed.FS

// GoldensNamespace is where the recorded goldens are.
const GoldensNamespace = "cozy-public"

// Case is a recorded timeline and what the API must answer on the way.
type Case struct {
	Name string
	// Events in the order in which they were recorded. Objects of different kinds may reach a server in
	// another order.
	Events []Event
	Want   Want
}

// Event is a change of one object. The object is whole, and for a deletion in its last state.
type Event struct {
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Want is what is expected of the answers to a case.
type Want struct {
	Case string `json:"case"`
	// Goldens are all that may ever appear as a WorkerImage.
	Goldens []Golden `json:"goldens"`
	// Pool is the one pool of the case; nil if it has none.
	Pool        *PoolRef     `json:"pool"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	Never       []Never      `json:"never"`
}

// Golden is the name of a golden and the two parts that it is made of.
type Golden struct {
	Name        string `json:"name"`
	SchematicID string `json:"schematicID"`
	Version     string `json:"version"`
}

// PoolRef names a pool.
type PoolRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Never is a rule that holds after every event.
type Never struct {
	ID   string `json:"id"`
	Rule string `json:"rule"`
}

// LoadAll returns every recorded case, by name.
func LoadAll() ([]*Case, error) {
	root, err := fs.Sub(testdata, "testdata")
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root, ".")
	if err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	var all []*Case
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		c, err := load(root, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("load case %s: %w", entry.Name(), err)
		}
		all = append(all, c)
	}
	return all, nil
}

func load(root fs.FS, name string) (*Case, error) {
	c := &Case{Name: name}
	timeline, err := fs.ReadFile(root, path.Join(name, "timeline.jsonl"))
	if err != nil {
		return nil, err
	}
	if c.Events, err = readTimeline(timeline); err != nil {
		return nil, fmt.Errorf("timeline.jsonl: %w", err)
	}
	want, err := fs.ReadFile(root, path.Join(name, "want.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(want, &c.Want); err != nil {
		return nil, fmt.Errorf("want.yaml: %w", err)
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("want.yaml: %w", err)
	}
	return c, nil
}

func readTimeline(data []byte) ([]Event, error) {
	var events []Event
	for line := range bytes.Lines(data) {
		recorded := struct {
			Index int                        `json:"i"`
			Event watch.EventType            `json:"event"`
			Obj   *unstructured.Unstructured `json:"object"`
		}{Index: -1}
		if err := json.Unmarshal(line, &recorded); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(events)+1, err)
		}
		if recorded.Index != len(events) {
			return nil, fmt.Errorf("line %d: event %d is out of order", len(events)+1, recorded.Index)
		}
		switch recorded.Event {
		case watch.Added, watch.Modified, watch.Deleted:
		default:
			return nil, fmt.Errorf("event %d: unknown type %q", recorded.Index, recorded.Event)
		}
		events = append(events, Event{Type: recorded.Event, Object: recorded.Obj})
	}
	return events, nil
}

func (c *Case) validate() error {
	var errs []error
	if c.Want.Case != c.Name {
		errs = append(errs, fmt.Errorf("is for case %q", c.Want.Case))
	}
	if len(c.Want.Checkpoints) == 0 || len(c.Want.Never) == 0 {
		errs = append(errs, errors.New("needs checkpoints and rules"))
	}
	after := 0
	for i, checkpoint := range c.Want.Checkpoints {
		if checkpoint.After < after || checkpoint.After >= len(c.Events) {
			errs = append(errs, fmt.Errorf("checkpoints[%d]: no event %d from here on", i, checkpoint.After))
		}
		after = checkpoint.After
		if !slices.ContainsFunc(c.Want.Goldens, func(g Golden) bool { return g.Name == checkpoint.Name() }) {
			errs = append(errs, fmt.Errorf("checkpoints[%d]: %q is none of the goldens", i, checkpoint.Name()))
		}
		if (checkpoint.WorkerImage == "") == (checkpoint.Absent == "") {
			errs = append(errs, fmt.Errorf("checkpoints[%d]: needs either workerImage or absent", i))
		}
	}
	known := rules(c, nil)
	for i, never := range c.Want.Never {
		if !slices.ContainsFunc(known, func(r rule) bool { return r.id == never.ID }) {
			errs = append(errs, fmt.Errorf("never[%d]: unknown rule %q", i, never.ID))
		}
	}
	return errors.Join(errs...)
}

// AddToken puts the token that no answer may show on every DataVolume and claim. Recordings hold none.
func (c *Case) AddToken() {
	for _, event := range c.Events {
		switch event.Object.GetKind() {
		case "DataVolume", "PersistentVolumeClaim":
			annotations := event.Object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[hiddenKey] = hiddenValue
			event.Object.SetAnnotations(annotations)
		}
	}
}
