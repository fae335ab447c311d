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
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// shuffles is in how many other orders each case is replayed.
const shuffles = 8

func TestEveryCaseIsAnsweredAtItsCheckpoints(t *testing.T) {
	forEachCase(t, func(t *testing.T, c *Case) {
		j := newJoin(c)
		next := 0
		for i, event := range c.Events {
			j.apply(t, event)
			for ; next < len(c.Want.Checkpoints) && c.Want.Checkpoints[next].After == i; next++ {
				checkpoint := c.Want.Checkpoints[next]
				for _, difference := range checkpoint.Check(j.monitor.Image(checkpoint.Name()), c.Want.Pool) {
					t.Errorf("after event %d: %s", i, difference)
				}
			}
		}
		j.end(t)
		if next != len(c.Want.Checkpoints) {
			t.Errorf("%d of %d checkpoints were reached", next, len(c.Want.Checkpoints))
		}
	})
}

func TestTheOrderOfKindsDoesNotShowInTheEnd(t *testing.T) {
	forEachCase(t, func(t *testing.T, c *Case) {
		recorded := newJoin(c)
		for _, event := range c.Events {
			recorded.apply(t, event)
		}
		for seed := range uint64(shuffles) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				shuffled := newJoin(c)
				for _, event := range shuffle(c.Events, rand.New(rand.NewPCG(seed, 0))) {
					shuffled.apply(t, event)
				}
				shuffled.end(t)
				if diff := cmp.Diff(recorded.monitor.Images(), shuffled.monitor.Images(), exceptVersions); diff != "" {
					t.Errorf("another order ends in another object (-recorded +shuffled):\n%s", diff)
				}
			})
		}
	})
}

// exceptVersions leaves out what tells how often and when an object changed.
var exceptVersions = cmp.Options{
	cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"),
	cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
}

func forEachCase(t *testing.T, test func(*testing.T, *Case)) {
	t.Helper()
	all, err := LoadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range all {
		c.AddToken()
		t.Run(c.Name, func(t *testing.T) { test(t, c) })
	}
}

// shuffle mixes the events of different objects and keeps the order within each.
func shuffle(events []Event, random *rand.Rand) []Event {
	rest := map[Key][]Event{}
	var turns []Key
	for _, event := range events {
		key := KeyOf(event.Object)
		rest[key] = append(rest[key], event)
		turns = append(turns, key)
	}
	random.Shuffle(len(turns), func(i, k int) { turns[i], turns[k] = turns[k], turns[i] })
	out := make([]Event, 0, len(events))
	for _, key := range turns {
		out = append(out, rest[key][0])
		rest[key] = rest[key][1:]
	}
	return out
}

// join computes every image anew after each event and publishes it into a log.
type join struct {
	in      *Inputs
	monitor *Monitor
	log     *memory.Log
	now     time.Time
}

func newJoin(c *Case) *join {
	in := NewInputs()
	return &join{
		in:      in,
		monitor: NewMonitor(c, in),
		log:     memory.NewLog(memory.LogOptions{First: 1, Attrs: storage.DefaultClusterScopedAttr}),
		now:     time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC),
	}
}

func (j *join) apply(t *testing.T, event Event) {
	t.Helper()
	j.now = j.now.Add(time.Second)
	j.in.Apply(event)
	j.in.Settle(j.in.Count())
	for _, id := range j.images() {
		j.publish(t, id)
	}
	j.report(t, j.monitor.Check())
}

func (j *join) end(t *testing.T) {
	t.Helper()
	j.report(t, j.monitor.End())
}

func (j *join) report(t *testing.T, broken []string) {
	t.Helper()
	for _, b := range broken {
		t.Error(b)
	}
}

// images are the goldens that the inputs name, and those that were published before.
func (j *join) images() []golden.ID {
	names := sets.KeySet(j.monitor.Images())
	for _, kind := range []string{"DataVolume", "PersistentVolumeClaim"} {
		for _, object := range j.in.Objects(kind) {
			if object.GetNamespace() == GoldensNamespace {
				names.Insert(object.GetName())
			}
		}
	}
	var out []golden.ID
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if id, ok := golden.ParseName(name); ok {
			out = append(out, id)
		}
	}
	return out
}

func (j *join) publish(t *testing.T, id golden.ID) {
	t.Helper()
	in, err := gather(j.in, id)
	if err != nil {
		t.Fatal(err)
	}
	before := j.published(id.Name())
	after := projection.WorkerImage(in, before, metav1.NewTime(j.now))
	var changed bool
	if after == nil {
		changed, err = j.log.Remove(id.Name())
	} else {
		changed, err = j.log.Apply(id.Name(), after)
	}
	if err != nil {
		t.Fatal(err)
	}
	if changed {
		j.deliver(t, before, j.published(id.Name()))
	}
}

func (j *join) published(name string) *images.WorkerImage {
	object, _ := j.log.Get(name)
	image, _ := object.(*images.WorkerImage)
	return image
}

// deliver shows the monitor what a watch would.
func (j *join) deliver(t *testing.T, before, after *images.WorkerImage) {
	t.Helper()
	if before != nil && after != nil && before.UID == after.UID {
		j.report(t, j.monitor.Deliver(watch.Modified, served(t, after)))
		return
	}
	if before != nil {
		j.report(t, j.monitor.Deliver(watch.Deleted, served(t, before)))
	}
	if after != nil {
		j.report(t, j.monitor.Deliver(watch.Added, served(t, after)))
	}
}

func served(t *testing.T, image *images.WorkerImage) *v1alpha1.WorkerImage {
	t.Helper()
	out := &v1alpha1.WorkerImage{}
	if err := v1alpha1.Convert_images_WorkerImage_To_v1alpha1_WorkerImage(image.DeepCopy(), out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}
