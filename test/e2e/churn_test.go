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

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

const (
	churnGoldens = 10
	churnPools   = 16
	churnDisks   = 16
	churnClasses = 4
)

// churn makes random changes to all kinds that images are joined from.
type churn struct {
	p      *platform
	random *rand.Rand
	slots  []*slot
	// override is the slot of the object that beats all profiles.
	override *slot
}

// slot is an object that comes, changes and goes.
type slot struct {
	resource        schema.GroupVersionResource
	namespace, name string
	make            func() *unstructured.Unstructured
	changes         []change
	there           bool
	uid             types.UID
}

// change returns what is merged into an object, or into its status.
type change func() (patch map[string]any, status bool)

func newChurn(t *testing.T, p *platform) *churn {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	c := &churn{p: p, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range churnGoldens {
		golden := c.golden(i)
		c.slots = append(c.slots, golden, c.claim(i, golden))
	}
	for i := range churnPools {
		c.slots = append(c.slots, c.pool(i))
	}
	for i := range churnDisks {
		c.slots = append(c.slots, c.disk(i))
	}
	for i := range churnClasses {
		c.slots = append(c.slots, c.class(i), c.profile(i))
	}
	c.override = c.cdi()
	c.slots = append(c.slots, c.override)
	t.Cleanup(func() {
		for _, s := range c.slots {
			p.Remove(t, s.resource, s.namespace, s.name)
		}
	})
	return c
}

// step makes one change: an object comes, changes or goes.
func (c *churn) step(t *testing.T) {
	t.Helper()
	s := c.slots[c.random.IntN(len(c.slots))]
	switch {
	case !s.there:
		created, err := c.p.Resource(s.resource, s.namespace).Create(t.Context(), s.make(), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.there, s.uid = true, created.GetUID()
	case c.random.IntN(6) == 0:
		c.p.Remove(t, s.resource, s.namespace, s.name)
		s.there = false
	default:
		patch, status := pick(c, s.changes)()
		var subresources []string
		if status {
			subresources = []string{"status"}
			patch = map[string]any{"status": patch}
		}
		text, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		c.p.Patch(t, s.resource, s.namespace, s.name, string(text), subresources...)
	}
}

// finish makes one last change to each kind and waits until all of them show: what was done before shows then too.
func (c *churn) finish(t *testing.T) {
	t.Helper()
	const last = "last"
	golden := c.p.createGolden(t, objects.NewGolden(last))
	c.p.Patch(t, objects.DataVolumes, objects.Goldens, golden.GetName(), `{"status":{"phase":"ImportInProgress","progress":"77.7%"}}`, "status")
	c.p.Create(t, objects.Claims, objects.NewClaim(last, golden.GetUID()))
	class := objects.NewClass(last)
	class.SetAnnotations(map[string]string{objects.VirtDefaultClass: "true"})
	c.p.Create(t, objects.StorageClasses, class)
	c.p.Create(t, objects.StorageProfiles, objects.NewProfile("replicated"))
	c.p.Patch(t, objects.StorageProfiles, "", "replicated", `{"status":{"cloneStrategy":"snapshot"}}`, "status")
	c.p.Create(t, objects.Pools, objects.NewPool("tenant-a", "last", "md0", "", last))
	c.p.Create(t, objects.DataVolumes, objects.NewDisk("tenant-a", "last", "md0", "x", last))
	c.p.Remove(t, objects.CDIs, "", c.override.name)
	c.p.awaitImage(t, objects.NameOf(last), "what was written last", func(image *v1alpha1.WorkerImage) bool {
		pool, s := poolOf(image, "tenant-a", "last-md0"), image.Status
		return pool.Disks.Cloning == 1 && pool.StorageClass.Name == last &&
			s.Progress != nil && *s.Progress == 77 && s.Claim != nil && s.CloneStrategy == "snapshot"
	})
}

func (c *churn) golden(i int) *slot {
	schematic := schematicOf(i)
	return &slot{
		resource: objects.DataVolumes, namespace: objects.Goldens, name: objects.NameOf(schematic),
		make: func() *unstructured.Unstructured { return objects.NewGolden(schematic) },
		changes: []change{
			func() (map[string]any, bool) {
				return map[string]any{
					"phase":        pick(c, dataVolumePhases),
					"progress":     pick(c, []string{"N/A", "0.00%", fmt.Sprintf("%.2f%%", 100*c.random.Float64()), "100.0%"}),
					"restartCount": c.random.IntN(5),
				}, true
			},
			func() (map[string]any, bool) {
				return map[string]any{"conditions": []any{map[string]any{
					"type": "Running", "status": pick(c, []string{"True", "False"}), "reason": "Error", "message": fmt.Sprintf("try %d", c.random.IntN(100)),
				}}}, true
			},
			c.annotation("kubernetes-worker-image.cozystack.io/talos-version", objects.Release, "v0.0.1"),
			c.annotation("of-no-interest", "a", "b", "c"),
		},
	}
}

func (c *churn) claim(i int, golden *slot) *slot {
	return &slot{
		resource: objects.Claims, namespace: objects.Goldens, name: golden.name,
		make: func() *unstructured.Unstructured { return objects.NewClaim(schematicOf(i), golden.uid) },
		changes: []change{
			func() (map[string]any, bool) {
				return map[string]any{"phase": pick(c, []string{"Pending", "Bound", "Bound", "Lost"}), "capacity": map[string]any{"storage": "6Gi"}}, true
			},
			c.annotation("cdi.kubevirt.io/storage.populatedFor", golden.name, ""),
			c.annotation("of-no-interest", "a", "b", "c"),
		},
	}
}

func (c *churn) pool(i int) *slot {
	tenant, name := tenantOf(i), fmt.Sprintf("md%d", i)
	return &slot{
		resource: objects.Pools, namespace: tenant, name: "churn-" + name,
		make: func() *unstructured.Unstructured {
			return objects.NewPool(tenant, "churn", name, c.className(), c.schematic())
		},
		changes: []change{
			func() (map[string]any, bool) {
				return map[string]any{"spec": map[string]any{"storageClass": c.className(), "diskSize": pick(c, []string{"4Gi", "20Gi", "garbage"})}}, false
			},
			func() (map[string]any, bool) {
				selection := map[string]any{"builtin": map[string]any{"schematicID": c.schematic(), "version": objects.Release}}
				return map[string]any{"spec": map[string]any{"osImage": pick(c, []map[string]any{selection, selection, {"builtin": nil}, nil})}}, false
			},
			func() (map[string]any, bool) {
				return map[string]any{"spec": map[string]any{"maxReplicas": c.random.IntN(100)}}, false
			},
		},
	}
}

func (c *churn) disk(i int) *slot {
	fresh := func() *unstructured.Unstructured {
		return objects.NewDisk(tenantOf(i), "churn", fmt.Sprintf("md%d", i%churnPools), fmt.Sprint(i), c.schematic())
	}
	return &slot{
		resource: objects.DataVolumes, namespace: tenantOf(i), name: fresh().GetName(), make: fresh,
		changes: []change{func() (map[string]any, bool) { return map[string]any{"phase": pick(c, dataVolumePhases)}, true }},
	}
}

func (c *churn) class(i int) *slot {
	return &slot{
		resource: objects.StorageClasses, name: classOf(i),
		make: func() *unstructured.Unstructured { return objects.NewClass(classOf(i)) },
		changes: []change{
			c.annotation(objects.DefaultClass, "true", "false"),
			c.annotation(objects.VirtDefaultClass, "true", "false"),
		},
	}
}

func (c *churn) profile(i int) *slot {
	return &slot{
		resource: objects.StorageProfiles, name: classOf(i),
		make: func() *unstructured.Unstructured { return objects.NewProfile(classOf(i)) },
		changes: []change{func() (map[string]any, bool) {
			return map[string]any{"cloneStrategy": pick(c, []string{"copy", "snapshot", "csi-clone"})}, true
		}},
	}
}

func (c *churn) cdi() *slot {
	return &slot{
		resource: objects.CDIs, name: "churn",
		make: func() *unstructured.Unstructured {
			return objects.Set(objects.New("cdi.kubevirt.io/v1beta1", "CDI", "", "churn"), "copy", "spec", "cloneStrategyOverride")
		},
		changes: []change{func() (map[string]any, bool) {
			return map[string]any{"spec": map[string]any{"cloneStrategyOverride": pick(c, []string{"copy", "csi-clone"})}}, false
		}},
	}
}

// annotation sets an annotation to one of the values.
func (c *churn) annotation(key string, values ...string) change {
	return func() (map[string]any, bool) {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: pick(c, values)}}}, false
	}
}

func (c *churn) schematic() string { return schematicOf(c.random.IntN(churnGoldens)) }

func (c *churn) className() string {
	return pick(c, []string{"", "replicated", classOf(c.random.IntN(churnClasses))})
}

func pick[T any](c *churn, from []T) T { return from[c.random.IntN(len(from))] }

func schematicOf(i int) string { return fmt.Sprintf("churn-%d", i) }

func classOf(i int) string { return fmt.Sprintf("churn-%d", i) }

func tenantOf(i int) string { return []string{"tenant-a", "tenant-b", "tenant-c"}[i%3] }

// dataVolumePhases are those of an import and of a clone, and one that nobody knows.
var dataVolumePhases = []string{"", "Pending", "ImportScheduled", "ImportInProgress", "CSICloneInProgress", "Succeeded", "Succeeded", "Failed", "Paused", "Unknown", "Invented"}
