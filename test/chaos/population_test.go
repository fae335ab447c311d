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

package chaos

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// population is how many images there are.
const population = 12

func schematicOf(i int) string { return fmt.Sprintf("chaos-%02d", i) }

var (
	tenants = []string{"tenant-a", "tenant-b", "tenant-c"}
	// used is the image that pools ask for, spare the last that none does.
	used  = objects.NameOf(schematicOf(0))
	spare = objects.NameOf(schematicOf(population - 1))
)

// populate makes images that are Ready, and a pool of each tenant that asks for the first. They go with the test.
func (p *platform) populate(t *testing.T) {
	t.Helper()
	for i := range population {
		p.createGolden(t, schematicOf(i))
	}
	for _, tenant := range tenants {
		p.Create(t, objects.Pools, objects.NewPool(tenant, "chaos", "md0", "", schematicOf(0)))
	}
	p.awaitHealthy(t)
}

// awaitHealthy waits until the population is as it should be, and returns how long that took.
func (p *platform) awaitHealthy(t *testing.T) time.Duration {
	t.Helper()
	return p.every(t, "as populated", healthy)
}

// healthy is the check of an image of the population.
func healthy(image *v1alpha1.WorkerImage) error {
	if err := has(v1alpha1.ConditionReady, metav1.ConditionTrue)(image); err != nil {
		return err
	}
	if image.Name == used {
		if image.Status.PoolCount != 3 {
			return fmt.Errorf("%d pools", image.Status.PoolCount)
		}
		return has(v1alpha1.ConditionInUse, metav1.ConditionTrue)(image)
	}
	return has(v1alpha1.ConditionDeletable, metav1.ConditionTrue)(image)
}

// createGolden makes a golden whose import is done.
func (p *platform) createGolden(t *testing.T, schematic string) {
	t.Helper()
	golden := p.Create(t, objects.DataVolumes, objects.NewGolden(schematic))
	p.Create(t, objects.Claims, objects.NewClaim(schematic, golden.GetUID()))
	p.finishImport(t, golden.GetName())
}

func (p *platform) finishImport(t *testing.T, name string) {
	t.Helper()
	p.Patch(t, objects.Claims, objects.Goldens, name, `{"status":{"phase":"Bound","capacity":{"storage":"6Gi"}}}`, "status")
	p.Patch(t, objects.DataVolumes, objects.Goldens, name, fmt.Sprintf(`{"status":{"phase":"Succeeded","progress":"100.0%%","claimName":%q}}`, name), "status")
}

// defaultClass is the StorageClass of what names none.
func defaultClass() *unstructured.Unstructured {
	class := objects.NewClass(objects.ClassName)
	class.SetAnnotations(map[string]string{objects.DefaultClass: "true"})
	return class
}

// catalogOf is the catalog that declares the image of one schematic.
func catalogOf(schematic string) *unstructured.Unstructured {
	catalog := objects.New("v1", "ConfigMap", objects.Goldens, "worker-image-catalog")
	catalog.Object["data"] = map[string]any{
		"catalog.yaml": fmt.Sprintf("images:\n- {schematicID: %s, version: %s}\n", schematic, objects.Release),
	}
	return catalog
}
