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

package projection

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
)

// ReasonNotSelected is the reason for disks whose pool annotation matches no pool that asks for the image.
const ReasonNotSelected = "NotSelected"

// allPools returns the pools that ask for the image and, under the name that their annotation gives, the
// disks that match none of them.
func allPools(in Image, image pool.Image) []images.PoolStatus {
	asking := make(map[poolName]bool, len(in.Pools))
	for _, p := range in.Pools {
		asking[poolName{p.Namespace, p.DiskPool}] = true
	}
	out := askingPools(in, image)
	for _, d := range in.Disks {
		if !asking[poolName{d.Namespace, d.Pool}] {
			out = append(out, notSelecting(d))
		}
	}
	slices.SortStableFunc(out, comparePools)
	// A pool object may bear the name that the annotation of stray disks gives; the object's entry stays.
	return slices.CompactFunc(out, func(a, b images.PoolStatus) bool { return comparePools(a, b) == 0 })
}

// askingPools returns the pools that ask for the image.
func askingPools(in Image, image pool.Image) []images.PoolStatus {
	disks := make(map[poolName]PoolDisks, len(in.Disks))
	for _, d := range in.Disks {
		disks[poolName{d.Namespace, d.Pool}] = d
	}
	out := make([]images.PoolStatus, 0, len(in.Pools)+len(in.Disks))
	for _, p := range in.Pools {
		out = append(out, selecting(in, p, disks[poolName{p.Namespace, p.DiskPool}], image))
	}
	slices.SortFunc(out, comparePools)
	return out
}

// poolName is how the disks of a pool name it.
type poolName struct{ namespace, pool string }

func comparePools(a, b images.PoolStatus) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// goldenOf is what pools are compared with.
func goldenOf(class golden.Class, state golden.State, status images.WorkerImageStatus) pool.Image {
	image := pool.Image{
		Exists:           true,
		State:            state,
		Class:            class.Effective,
		ClassFromDefault: class.FromDefault,
		Strategy:         status.CloneStrategy,
	}
	if status.Storage != nil {
		image.Size = status.Storage.Requested
	}
	return image
}

func selecting(in Image, p pool.Pool, disks PoolDisks, image pool.Image) images.PoolStatus {
	class := p.Class(disks.StorageClass, in.Classes)
	if class.From == images.StorageClassDefault && !in.Sources.StorageClasses {
		class.Name = ""
	}
	verdict := pool.Judge(p, class, image)
	if !in.Sources.Pools {
		verdict = pool.Verdict{
			Cloneable: metav1.ConditionUnknown,
			Reason:    ReasonSourceNotReadable,
			Message:   notReadable([]string{kindPools}),
		}
	}
	return images.PoolStatus{
		Namespace:         p.Namespace,
		Name:              p.Name,
		Cluster:           p.Cluster,
		MinReplicas:       p.MinReplicas,
		MaxReplicas:       p.MaxReplicas,
		KubernetesVersion: p.KubernetesVersion,
		DiskSize:          p.DiskSize,
		StorageClass:      &images.PoolStorageClass{Name: class.Name, From: class.From},
		Disks:             counts(disks),
		Cloneable:         verdict.Cloneable,
		Reason:            verdict.Reason,
		Message:           verdict.Message,
	}
}

func notSelecting(disks PoolDisks) images.PoolStatus {
	out := images.PoolStatus{
		Namespace: disks.Namespace,
		Name:      disks.Pool,
		Disks:     counts(disks),
		Cloneable: metav1.ConditionUnknown,
		Reason:    ReasonNotSelected,
		Message: "No pool that asks for this image has this name: the disks were cloned before their pool moved on " +
			"or was deleted, or their pool has another release name (spec.clusterReleaseName).",
	}
	if disks.StorageClass != "" {
		out.StorageClass = &images.PoolStorageClass{Name: disks.StorageClass, From: images.StorageClassClonedDisk}
	}
	return out
}

func counts(d PoolDisks) images.DiskCounts {
	return images.DiskCounts{Cloned: d.Cloned, Cloning: d.Cloning, Failed: d.Failed}
}
