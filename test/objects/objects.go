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

package objects

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// Goldens is the namespace of the goldens.
	Goldens = "cozy-public"
	// Release is the Talos release of the goldens.
	Release = "v1.13.6"
	// ClassName is the StorageClass of goldens and disks.
	ClassName = "replicated"
	// DefaultClass marks the StorageClass that claims without one get.
	DefaultClass = "storageclass.kubernetes.io/is-default-class"
	// VirtDefaultClass marks the one that beats it for disks.
	VirtDefaultClass = "storageclass.kubevirt.io/is-default-virt-class"
)

// NameOf is the name of the golden of a schematic.
func NameOf(schematic string) string {
	return "talos-worker-" + schematic + "-" + Release
}

// NewGolden returns the DataVolume of a golden as the platform's package renders it.
func NewGolden(schematic string) *unstructured.Unstructured {
	golden := New("cdi.kubevirt.io/v1beta1", "DataVolume", Goldens, NameOf(schematic))
	golden.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "cozystack"})
	golden.SetAnnotations(map[string]string{
		"helm.sh/resource-policy":                            "keep",
		"cdi.kubevirt.io/storage.bind.immediate.requested":   "true",
		"cdi.kubevirt.io/storage.usePopulator":               "true",
		"kubernetes-worker-image.cozystack.io/schematic-id":  schematic,
		"kubernetes-worker-image.cozystack.io/talos-version": Release,
	})
	golden.Object["spec"] = map[string]any{
		"contentType": "kubevirt",
		"source":      map[string]any{"http": map[string]any{"url": ImageURL(schematic)}},
		"storage":     storage("6Gi"),
	}
	return golden
}

// ImageURL is where a schematic is published.
func ImageURL(schematic string) string {
	return fmt.Sprintf("https://factory.talos.dev/image/%s/%s/openstack-amd64.raw.xz", schematic, Release)
}

// NewClaim returns the claim of a golden as CDI makes it. Its owner may be gone.
func NewClaim(schematic string, owner types.UID) *unstructured.Unstructured {
	claim := New("v1", "PersistentVolumeClaim", Goldens, NameOf(schematic))
	if owner != "" {
		claim.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: NameOf(schematic), UID: owner, Controller: ptr.To(true),
		}})
	}
	claim.Object["spec"] = storage("6Gi")
	return Set(claim, []any{"ReadWriteMany"}, "spec", "accessModes")
}

// NewDisk returns the DataVolume of a worker disk of a pool.
func NewDisk(namespace, cluster, pool, suffix, schematic string) *unstructured.Unstructured {
	release := fmt.Sprintf("kubernetes-%s-%s", cluster, pool)
	disk := New("cdi.kubevirt.io/v1beta1", "DataVolume", namespace, fmt.Sprintf("disk-system-%s-%s", release, suffix))
	disk.SetAnnotations(map[string]string{
		"kubernetes-worker-image.cozystack.io/golden": NameOf(schematic),
		"kubernetes-worker-image.cozystack.io/pool":   release,
	})
	disk.Object["spec"] = map[string]any{
		"contentType": "kubevirt",
		"source":      map[string]any{"pvc": map[string]any{"namespace": Goldens, "name": NameOf(schematic)}},
		"storage":     storage("20Gi"),
	}
	return disk
}

func storage(size string) map[string]any {
	return map[string]any{
		"storageClassName": ClassName,
		"resources":        map[string]any{"requests": map[string]any{"storage": size}},
	}
}

// NewPool returns the pool CLUSTER-POOL that consumes a golden. Without a class it leaves the choice to the cluster.
func NewPool(namespace, cluster, pool, class, schematic string) *unstructured.Unstructured {
	o := New("apps.cozystack.io/v1alpha1", "KubernetesNodes", namespace, cluster+"-"+pool)
	o.Object["spec"] = map[string]any{
		"cluster":      cluster,
		"version":      "v1.35",
		"minReplicas":  int64(0),
		"maxReplicas":  int64(10),
		"storageClass": class,
		"diskSize":     "20Gi",
		"osImage":      map[string]any{"builtin": map[string]any{"schematicID": schematic, "version": Release}},
	}
	return o
}

// NewClass returns a StorageClass of the simulated storage.
func NewClass(name string) *unstructured.Unstructured {
	class := New("storage.k8s.io/v1", "StorageClass", "", name)
	class.Object["provisioner"] = "linstor.csi.linbit.com"
	class.Object["volumeBindingMode"] = "Immediate"
	class.Object["allowVolumeExpansion"] = true
	return class
}

// NewProfile returns the StorageProfile of a class as CDI makes it at first.
func NewProfile(class string) *unstructured.Unstructured {
	return Set(New("cdi.kubevirt.io/v1beta1", "StorageProfile", "", class), map[string]any{}, "spec")
}

// NewBinding gives a group a ClusterRole, in a namespace or, if that is empty, in the cluster.
func NewBinding(kind, namespace, name, role, group string) *unstructured.Unstructured {
	const api = "rbac.authorization.k8s.io"
	o := New(api+"/v1", kind, namespace, name)
	o.Object["roleRef"] = map[string]any{"apiGroup": api, "kind": "ClusterRole", "name": role}
	o.Object["subjects"] = []any{map[string]any{"apiGroup": api, "kind": "Group", "name": group}}
	return o
}

// New returns an object that has nothing but its name.
func New(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Set changes a field of an object that a test made itself.
func Set(o *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}
