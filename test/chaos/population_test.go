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
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

const (
	goldens = "cozy-public"
	// release is the Talos release of the goldens that tests make.
	release = "v1.13.6"
	// population is how many images there are.
	population = 12
)

// schematicOf and nameOf name the images of the population.
func schematicOf(i int) string       { return fmt.Sprintf("chaos-%02d", i) }
func nameOf(schematic string) string { return "talos-worker-" + schematic + "-" + release }

var (
	tenants = []string{"tenant-a", "tenant-b", "tenant-c"}
	// used is the image that pools ask for, spare the last that none does.
	used  = nameOf(schematicOf(0))
	spare = nameOf(schematicOf(population - 1))
)

// populate makes images that are Ready, and a pool of each tenant that asks for the first. They go with the test.
func (p *platform) populate(t *testing.T) {
	t.Helper()
	for i := range population {
		p.createGolden(t, schematicOf(i))
	}
	for _, tenant := range tenants {
		p.create(t, pools, newPool(tenant, "chaos", "md0", schematicOf(0)))
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
	golden := p.create(t, dataVolumes, newGolden(schematic))
	p.create(t, claims, newClaim(golden))
	p.finishImport(t, golden.GetName())
}

func (p *platform) finishImport(t *testing.T, name string) {
	t.Helper()
	p.patch(t, claims, goldens, name, `{"status":{"phase":"Bound","capacity":{"storage":"6Gi"}}}`, "status")
	p.patch(t, dataVolumes, goldens, name, fmt.Sprintf(`{"status":{"phase":"Succeeded","progress":"100.0%%","claimName":%q}}`, name), "status")
}

func newGolden(schematic string) *unstructured.Unstructured {
	golden := object("cdi.kubevirt.io/v1beta1", "DataVolume", goldens, nameOf(schematic))
	golden.SetAnnotations(map[string]string{
		"kubernetes-worker-image.cozystack.io/schematic-id":  schematic,
		"kubernetes-worker-image.cozystack.io/talos-version": release,
	})
	golden.Object["spec"] = map[string]any{
		"contentType": "kubevirt",
		"source": map[string]any{"http": map[string]any{
			"url": fmt.Sprintf("https://factory.talos.dev/image/%s/%s/openstack-amd64.raw.xz", schematic, release),
		}},
		"storage": storage("6Gi"),
	}
	return golden
}

func newClaim(owner *unstructured.Unstructured) *unstructured.Unstructured {
	claim := object("v1", "PersistentVolumeClaim", goldens, owner.GetName())
	claim.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true),
	}})
	spec := storage("6Gi")
	spec["accessModes"] = []any{"ReadWriteMany"}
	claim.Object["spec"] = spec
	return claim
}

func storage(size string) map[string]any {
	return map[string]any{"storageClassName": "replicated", "resources": map[string]any{"requests": map[string]any{"storage": size}}}
}

func newPool(namespace, cluster, pool, schematic string) *unstructured.Unstructured {
	o := object("apps.cozystack.io/v1alpha1", "KubernetesNodes", namespace, cluster+"-"+pool)
	o.Object["spec"] = map[string]any{
		"cluster":     cluster,
		"version":     "v1.35",
		"minReplicas": int64(0),
		"maxReplicas": int64(10),
		"diskSize":    "20Gi",
		"osImage":     map[string]any{"builtin": map[string]any{"schematicID": schematic, "version": release}},
	}
	return o
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// defaultClass is the StorageClass of what names none.
func defaultClass() *unstructured.Unstructured {
	class := object("storage.k8s.io/v1", "StorageClass", "", "replicated")
	class.SetAnnotations(map[string]string{"storageclass.kubernetes.io/is-default-class": "true"})
	class.Object["provisioner"] = "linstor.csi.linbit.com"
	return class
}

// catalogOf is the catalog that declares the image of one schematic.
func catalogOf(schematic string) *unstructured.Unstructured {
	catalog := object("v1", "ConfigMap", goldens, "worker-image-catalog")
	catalog.Object["data"] = map[string]any{
		"catalog.yaml": fmt.Sprintf("images:\n- {schematicID: %s, version: %s}\n", schematic, release),
	}
	return catalog
}
