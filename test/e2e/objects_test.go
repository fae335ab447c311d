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
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

const (
	goldens = "cozy-public"
	// release is the Talos release of the goldens that tests make.
	release = "v1.13.6"
	// defaultClass marks the StorageClass that claims without one get; virtDefaultClass beats it for disks.
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	virtDefaultClass = "storageclass.kubevirt.io/is-default-virt-class"
)

// The samples of the real platform that tests rely on.
const (
	defaultSample     = "talos-worker-ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515-v1.13.6"
	nvidiaSample      = "talos-worker-gpu-nvidia-v1.13.6"
	edgeSample        = "talos-worker-edge-v1.13.6"
	slowSample        = "talos-worker-slow-iscsi-v1.13.7"
	unpublishedSample = "talos-worker-unpublished-zfs-v1.13.6"
	classlessSample   = "talos-worker-gpu-amd-v1.13.6"
)

// samples are in the order of their names.
var samples = []string{defaultSample, edgeSample, classlessSample, nvidiaSample, slowSample, unpublishedSample}

// The schematics whose imports go as simRules says.
const (
	// steady is imported slowly enough for its progress to be seen.
	steady = "steady"
	// refused fails twice, with a message that tells too much.
	refused = "refused"
)

func simRules() []stack.Rule {
	return []stack.Rule{
		{Match: "/image/" + steady, Duration: metav1.Duration{Duration: 10 * time.Second}},
		{
			Match: "/image/" + refused, Outcome: nodesim.Fail, Failures: 2,
			Duration: metav1.Duration{Duration: time.Second}, Backoff: metav1.Duration{Duration: time.Second},
			Message: "Unable to connect to https://mirror:hunter2@factory.talos.dev/image?key=hunter3: no route to host",
		},
	}
}

// nameOf is the name of the golden of a schematic.
func nameOf(schematic string) string {
	return "talos-worker-" + schematic + "-" + release
}

// newGolden returns the DataVolume of a golden as the platform's package renders it.
func newGolden(schematic string) *unstructured.Unstructured {
	golden := object("cdi.kubevirt.io/v1beta1", "DataVolume", goldens, nameOf(schematic))
	golden.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "cozystack"})
	golden.SetAnnotations(map[string]string{
		"helm.sh/resource-policy":                            "keep",
		"cdi.kubevirt.io/storage.bind.immediate.requested":   "true",
		"cdi.kubevirt.io/storage.usePopulator":               "true",
		"kubernetes-worker-image.cozystack.io/schematic-id":  schematic,
		"kubernetes-worker-image.cozystack.io/talos-version": release,
	})
	golden.Object["spec"] = map[string]any{
		"contentType": "kubevirt",
		"source":      map[string]any{"http": map[string]any{"url": imageURL(schematic)}},
		"storage":     storage("replicated", "6Gi"),
	}
	return golden
}

func imageURL(schematic string) string {
	return fmt.Sprintf("https://factory.talos.dev/image/%s/%s/openstack-amd64.raw.xz", schematic, release)
}

// newClaim returns the claim of a golden as CDI makes it. Its owner may be gone.
func newClaim(schematic string, owner types.UID) *unstructured.Unstructured {
	claim := object("v1", "PersistentVolumeClaim", goldens, nameOf(schematic))
	if owner != "" {
		claim.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: nameOf(schematic), UID: owner, Controller: ptr.To(true),
		}})
	}
	claim.Object["spec"] = storage("replicated", "6Gi")
	return set(claim, []any{"ReadWriteMany"}, "spec", "accessModes")
}

// newDisk returns the DataVolume of a worker disk of a pool.
func newDisk(namespace, cluster, pool, suffix, schematic string) *unstructured.Unstructured {
	release := fmt.Sprintf("kubernetes-%s-%s", cluster, pool)
	disk := object("cdi.kubevirt.io/v1beta1", "DataVolume", namespace, fmt.Sprintf("disk-system-%s-%s", release, suffix))
	disk.SetAnnotations(map[string]string{
		"kubernetes-worker-image.cozystack.io/golden": nameOf(schematic),
		"kubernetes-worker-image.cozystack.io/pool":   release,
	})
	disk.Object["spec"] = map[string]any{
		"contentType": "kubevirt",
		"source":      map[string]any{"pvc": map[string]any{"namespace": goldens, "name": nameOf(schematic)}},
		"storage":     storage("replicated", "20Gi"),
	}
	return disk
}

func storage(class, size string) map[string]any {
	return map[string]any{
		"storageClassName": class,
		"resources":        map[string]any{"requests": map[string]any{"storage": size}},
	}
}

// newPool returns the pool CLUSTER-POOL that consumes a golden.
func newPool(namespace, cluster, pool, class, schematic string) *unstructured.Unstructured {
	o := object("apps.cozystack.io/v1alpha1", "KubernetesNodes", namespace, cluster+"-"+pool)
	o.Object["spec"] = map[string]any{
		"cluster":      cluster,
		"version":      "v1.35",
		"minReplicas":  int64(0),
		"maxReplicas":  int64(10),
		"storageClass": class,
		"diskSize":     "20Gi",
		"osImage":      map[string]any{"builtin": map[string]any{"schematicID": schematic, "version": release}},
	}
	return o
}

// newClass returns a StorageClass of the simulated storage.
func newClass(name string) *unstructured.Unstructured {
	class := object("storage.k8s.io/v1", "StorageClass", "", name)
	class.Object["provisioner"] = "linstor.csi.linbit.com"
	class.Object["volumeBindingMode"] = "Immediate"
	class.Object["allowVolumeExpansion"] = true
	return class
}

// newProfile returns the StorageProfile of a class as CDI makes it at first.
func newProfile(class string) *unstructured.Unstructured {
	return set(object("cdi.kubevirt.io/v1beta1", "StorageProfile", "", class), map[string]any{}, "spec")
}

// binding gives a group a ClusterRole, in a namespace or, if that is empty, in the cluster.
func binding(kind, namespace, name, role, group string) *unstructured.Unstructured {
	const api = "rbac.authorization.k8s.io"
	o := object(api+"/v1", kind, namespace, name)
	o.Object["roleRef"] = map[string]any{"apiGroup": api, "kind": "ClusterRole", "name": role}
	o.Object["subjects"] = []any{map[string]any{"apiGroup": api, "kind": "Group", "name": group}}
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

// set changes a field of an object that a test made itself.
func set(o *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}
