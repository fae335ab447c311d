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
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// platform is the image of a pool that pins none, as it was when the cases were recorded.
var platform = golden.ID{
	SchematicID: "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
	Version:     "v1.13.6",
}

// gather returns what is known about an image. It goes through all objects each time, so that there is no
// index that could be wrong.
func gather(in *Inputs, id golden.ID) (projection.Image, error) {
	image := projection.Image{
		ID:       id,
		Profiles: profiles(in),
		Sources: projection.Sources{
			DataVolumes:     true,
			Claims:          true,
			StorageClasses:  true,
			StorageProfiles: true,
			Pools:           true,
			Catalog:         true,
		},
	}
	var err error
	if image.Classes, err = classes(in); err != nil {
		return image, err
	}
	claimName := id.Name()
	if dv := find(in, "DataVolume", GoldensNamespace, id.Name()); dv != nil {
		image.DataVolume = golden.DataVolumeFrom(dv.Object)
		claimName = image.DataVolume.Claim()
	}
	if claim := find(in, "PersistentVolumeClaim", GoldensNamespace, claimName); claim != nil {
		pvc, err := typed[corev1.PersistentVolumeClaim](claim)
		if err != nil {
			return image, err
		}
		image.Claim = golden.ClaimFrom(pvc)
	}
	for _, object := range in.Objects("KubernetesNodes") {
		if p := pool.From(object.Object, platform); p.Selection.Consumes && p.Selection.Image == id {
			image.Pools = append(image.Pools, p)
		}
	}
	image.Disks, image.Clones, err = disks(in, claimName)
	return image, err
}

func classes(in *Inputs) (storageclass.Classes, error) {
	var out storageclass.Classes
	for _, object := range in.Objects("StorageClass") {
		class, err := typed[storagev1.StorageClass](object)
		if err != nil {
			return nil, err
		}
		out = append(out, storageclass.FromStorageClass(class))
	}
	return out, nil
}

func profiles(in *Inputs) storageclass.Profiles {
	out := storageclass.Profiles{Strategies: map[string]string{}}
	for _, object := range in.Objects("StorageProfile") {
		class, strategy := storageclass.StrategyFromProfile(object.Object)
		out.Strategies[class] = strategy
	}
	for _, object := range in.Objects("CDI") {
		out.Override = cmp.Or(out.Override, storageclass.OverrideFromCDI(object.Object))
	}
	return out
}

// disks adds up the clones of a claim, those of pools and those in flight that belong to none.
func disks(in *Inputs, claimName string) (pools []projection.PoolDisks, loose int, err error) {
	type key struct{ namespace, pool string }
	sums := map[key]*projection.PoolDisks{}
	classes := map[key][]string{}
	for _, object := range in.Objects("DataVolume") {
		disk, ok := pool.DiskFrom(object.Object, GoldensNamespace)
		if !ok || disk.SourceClaim != claimName {
			continue
		}
		if disk.Pool == "" {
			loose += count(disk.InFlight)
			continue
		}
		k := key{disk.Namespace, disk.Pool}
		if sums[k] == nil {
			sums[k] = &projection.PoolDisks{Namespace: disk.Namespace, Pool: disk.Pool}
		}
		add(sums[k], disk)
		if disk.State != pool.DiskCloned {
			continue
		}
		class, err := classOfDisk(in, disk)
		if err != nil {
			return nil, 0, err
		}
		classes[k] = append(classes[k], class)
	}
	for k, sum := range sums {
		sum.StorageClass = commonest(classes[k])
		pools = append(pools, *sum)
	}
	return pools, loose, nil
}

func add(sum *projection.PoolDisks, disk pool.Disk) {
	sum.InFlight += int32(count(disk.InFlight))
	switch disk.State {
	case pool.DiskCloned:
		sum.Cloned++
	case pool.DiskCloning:
		sum.Cloning++
	case pool.DiskFailed:
		sum.Failed++
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// classOfDisk is what its DataVolume names, else what its claim sits on.
func classOfDisk(in *Inputs, disk pool.Disk) (string, error) {
	object := find(in, "PersistentVolumeClaim", disk.Namespace, disk.ClaimName)
	if disk.StorageClass != "" || object == nil {
		return disk.StorageClass, nil
	}
	pvc, err := typed[corev1.PersistentVolumeClaim](object)
	if err != nil {
		return "", err
	}
	if class := golden.ClaimFrom(pvc).StorageClass; class != nil {
		return *class, nil
	}
	return "", nil
}

// commonest returns the first by name of the classes that occur most often.
func commonest(classes []string) string {
	counts := map[string]int{}
	for _, class := range classes {
		if class != "" {
			counts[class]++
		}
	}
	best := ""
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		if counts[class] > counts[best] {
			best = class
		}
	}
	return best
}

func find(in *Inputs, kind, namespace, name string) *unstructured.Unstructured {
	states := in.States(Key{Kind: kind, Namespace: namespace, Name: name})
	return states[len(states)-1]
}

func typed[T any](object *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return out, nil
}
