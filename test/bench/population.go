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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

const (
	class   = "replicated"
	release = "v1.13.6"
	// poolsPerImage makes an image of about 3 KB.
	poolsPerImage = 5
	// disksPerPool are the workers of a pool. Only the first images have any, up to the size where it matters how
	// many there are.
	disksPerPool = 5
	// created is when everything was made.
	created = "2026-10-01T12:00:00Z"
	// writers write into etcd at once.
	writers = 32
)

// record is a key of etcd and its value.
type record struct{ key, value string }

// populate makes as many images as are wanted, with pools, disks and custom resources, and waits until they are
// served.
func (b *bench) populate(ctx context.Context, images int) error {
	var records []record
	for i := b.images; i < images; i++ {
		golden, err := goldenRecords(i)
		if err != nil {
			return err
		}
		records = append(records, golden...)
		for n := range poolsPerImage {
			pool := poolOf(i*poolsPerImage+n, i)
			consumer, err := pool.records(disksOf(i))
			if err != nil {
				return err
			}
			records = append(records, consumer...)
		}
	}
	if err := b.put(ctx, records); err != nil {
		return err
	}
	if err := b.awaitImages(ctx, images, poolsPerImage, allDisks(images)); err != nil {
		return err
	}
	if err := b.copyToCustomResources(ctx); err != nil {
		return err
	}
	b.images = images
	return poll(ctx, "the custom resources", func(ctx context.Context) error {
		if n, err := b.count(ctx, storedGroup); err != nil || n != images {
			return fmt.Errorf("%d of %d are served: %w", n, images, err)
		}
		return nil
	})
}

// put writes records, some at a time, and each for itself: kube-apiserver relies on objects to differ in their versions.
func (b *bench) put(ctx context.Context, records []record) error {
	failures := make([]error, len(records))
	workqueue.ParallelizeUntil(ctx, writers, len(records), func(i int) {
		_, failures[i] = b.etcd.Put(ctx, records[i].key, records[i].value)
	})
	if err := errors.Join(append(failures, ctx.Err())...); err != nil {
		return fmt.Errorf("write into etcd: %w", err)
	}
	return nil
}

// awaitImages waits until all images are ready, each with that many pools, and with all disks.
func (b *bench) awaitImages(ctx context.Context, images, pools, disks int) error {
	return poll(ctx, "the images", func(ctx context.Context) error {
		list, err := b.dynamic.Resource(imagesOf(servedGroup)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		complete, cloned := 0, 0
		for i := range list.Items {
			phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
			count, _, _ := unstructured.NestedInt64(list.Items[i].Object, "status", "poolCount")
			if phase == "Ready" && count == int64(pools) {
				complete++
			}
			cloned += clonedDisks(list.Items[i].Object)
		}
		if complete != images || cloned != disks {
			return fmt.Errorf("%d of %d are complete, with %d of %d disks", complete, images, cloned, disks)
		}
		return nil
	})
}

// disksOf returns how many disks each pool of an image has.
func disksOf(image int) int {
	if image < targetImages {
		return disksPerPool
	}
	return 0
}

func allDisks(images int) (sum int) {
	for i := range images {
		sum += poolsPerImage * disksOf(i)
	}
	return sum
}

func clonedDisks(image map[string]any) (sum int) {
	pools, _, _ := unstructured.NestedSlice(image, "status", "pools")
	for _, pool := range pools {
		if p, ok := pool.(map[string]any); ok {
			cloned, _, _ := unstructured.NestedInt64(p, "disks", "cloned")
			sum += int(cloned)
		}
	}
	return sum
}

// copyToCustomResources stores what is served now.
func (b *bench) copyToCustomResources(ctx context.Context) error {
	list, err := b.dynamic.Resource(imagesOf(servedGroup)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var records []record
	for i := range list.Items {
		image := &list.Items[i]
		image.SetAPIVersion(storedGroup + "/" + version)
		image.SetKind("WorkerImage")
		image.SetResourceVersion("")
		r, err := asJSON(image.Object, storedGroup+"/workerimages/"+image.GetName())
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	return b.put(ctx, records)
}

// asJSON is how custom resources are stored.
func asJSON(content map[string]any, key string) (record, error) {
	value, err := json.Marshal(content)
	return record{"/registry/" + key, string(value)}, err
}

// asProtobuf is how claims are stored.
func asProtobuf(claim *corev1.PersistentVolumeClaim) (record, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return record{}, fmt.Errorf("nothing writes %s", runtime.ContentTypeProtobuf)
	}
	value, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), claim)
	return record{"/registry/persistentvolumeclaims/" + claim.Namespace + "/" + claim.Name, string(value)}, err
}

func schematic(image int) string { return fmt.Sprintf("bench%05d", image) }

func goldenName(image int) string { return "talos-worker-" + schematic(image) + "-" + release }

// goldenRecords are the DataVolume and the claim of an image that is ready.
func goldenRecords(image int) ([]record, error) {
	name := goldenName(image)
	annotations := map[string]any{
		"helm.sh/resource-policy":                            "keep",
		"cdi.kubevirt.io/storage.bind.immediate.requested":   "true",
		"cdi.kubevirt.io/storage.usePopulator":               "true",
		"kubernetes-worker-image.cozystack.io/schematic-id":  schematic(image),
		"kubernetes-worker-image.cozystack.io/talos-version": release,
	}
	url := fmt.Sprintf("https://factory.talos.dev/image/%s/%s/openstack-amd64.raw.xz", schematic(image), release)
	return dataVolumeRecords(goldensNamespace, name, annotations, map[string]any{"http": map[string]any{"url": url}}, "6Gi")
}

// consumer is a pool that asks for an image.
type consumer struct{ pool, image int }

func poolOf(pool, image int) consumer { return consumer{pool: pool, image: image} }

func (c consumer) namespace() string { return tenants[c.pool%len(tenants)] }

func (c consumer) cluster() string { return fmt.Sprintf("k%06d", c.pool) }

// records are the pool, and its disks with their claims.
func (c consumer) records(disks int) ([]record, error) {
	name := c.cluster() + "-md0"
	pool := object("apps.cozystack.io/v1alpha1", "KubernetesNodes", c.namespace(), name, map[string]any{
		"spec": map[string]any{
			"cluster": c.cluster(), "version": "v1.35", "minReplicas": 0, "maxReplicas": 10, "storageClass": class, "diskSize": "20Gi",
			"osImage": map[string]any{"builtin": map[string]any{"schematicID": schematic(c.image), "version": release}},
		},
	})
	stamp(pool)
	first, err := asJSON(pool.Object, "apps.cozystack.io/kubernetesnodeses/"+c.namespace()+"/"+name)
	if err != nil {
		return nil, err
	}
	records := []record{first}
	for i := range disks {
		disk, err := c.disk(i)
		if err != nil {
			return nil, err
		}
		records = append(records, disk...)
	}
	return records, nil
}

// disk is a worker disk that was cloned, with its claim.
func (c consumer) disk(i int) ([]record, error) {
	name := fmt.Sprintf("disk-system-kubernetes-%s-md0-%05d", c.cluster(), i)
	annotations := map[string]any{
		"cdi.kubevirt.io/cloneType":                   "csi-clone",
		"cdi.kubevirt.io/storage.usePopulator":        "true",
		"kubernetes-worker-image.cozystack.io/golden": goldenName(c.image),
		"kubernetes-worker-image.cozystack.io/pool":   "kubernetes-" + c.cluster() + "-md0",
	}
	source := map[string]any{"pvc": map[string]any{"namespace": goldensNamespace, "name": goldenName(c.image)}}
	return dataVolumeRecords(c.namespace(), name, annotations, source, "20Gi")
}

// dataVolumeRecords are a DataVolume that succeeded, as CDI leaves it, and its claim.
func dataVolumeRecords(namespace, name string, annotations, source map[string]any, size string) ([]record, error) {
	condition := func(kind, status, reason, message string) map[string]any {
		return map[string]any{
			"type": kind, "status": status, "reason": reason, "message": message,
			"lastHeartbeatTime": created, "lastTransitionTime": created,
		}
	}
	dv := object("cdi.kubevirt.io/v1beta1", "DataVolume", namespace, name, map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec": map[string]any{
			"contentType": "kubevirt",
			"source":      source,
			"storage":     map[string]any{"storageClassName": class, "resources": map[string]any{"requests": map[string]any{"storage": size}}},
		},
		"status": map[string]any{
			"claimName": name, "phase": "Succeeded", "progress": "100.0%",
			"conditions": []any{
				condition("Bound", "True", "Bound", "PVC "+name+" Bound"),
				condition("Ready", "True", "", ""),
				condition("Running", "False", "Completed", "Complete"),
			},
		},
	})
	stamp(dv)
	first, err := asJSON(dv.Object, "cdi.kubevirt.io/datavolumes/"+namespace+"/"+name)
	if err != nil {
		return nil, err
	}
	second, err := asProtobuf(claim(dv, size))
	return []record{first, second}, err
}

// claim is the claim of a DataVolume, bound.
func claim(dv *unstructured.Unstructured, size string) *corev1.PersistentVolumeClaim {
	quantity := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         dv.GetNamespace(),
			Name:              dv.GetName(),
			UID:               types.UID(uuid.NewString()),
			CreationTimestamp: dv.GetCreationTimestamp(),
			Labels:            map[string]string{"app": "containerized-data-importer", "app.kubernetes.io/managed-by": "cdi-controller"},
			Annotations:       map[string]string{"cdi.kubevirt.io/storage.contentType": "kubevirt", "cdi.kubevirt.io/storage.pod.phase": "Succeeded"},
			Finalizers:        []string{"kubernetes.io/pvc-protection"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: dv.GetAPIVersion(), Kind: dv.GetKind(), Name: dv.GetName(), UID: dv.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        corev1.VolumeResourceRequirements{Requests: quantity},
			StorageClassName: ptr.To(class),
			VolumeMode:       ptr.To(corev1.PersistentVolumeBlock),
			VolumeName:       "pvc-" + string(dv.GetUID()),
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: quantity, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		},
	}
}

// stamp adds what kube-apiserver does when an object is made.
func stamp(o *unstructured.Unstructured) {
	metadata := o.Object["metadata"].(map[string]any)
	metadata["uid"], metadata["creationTimestamp"], metadata["generation"] = uuid.NewString(), created, 1
}
