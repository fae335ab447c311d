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
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// join is a client that reads what images are made of, and puts them together itself.
type join struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// diskKey is what worker disks are added up by.
type diskKey struct{ image, namespace, pool string }

// inputs are the lists, indexed.
type inputs struct {
	goldens  map[golden.ID]*golden.DataVolume
	claims   map[string]*golden.Claim
	classes  storageclass.Classes
	profiles storageclass.Profiles
	pools    map[golden.ID][]pool.Pool
	disks    map[diskKey]*projection.PoolDisks
}

// images makes all images from lists of everything.
func (j *join) images(ctx context.Context) (int, error) {
	in := &inputs{
		goldens: map[golden.ID]*golden.DataVolume{}, claims: map[string]*golden.Claim{},
		profiles: storageclass.Profiles{Strategies: map[string]string{}},
		pools:    map[golden.ID][]pool.Pool{}, disks: map[diskKey]*projection.PoolDisks{},
	}
	for _, read := range []func(context.Context, *inputs) error{j.dataVolumes, j.claims, j.classes, j.profiles, j.pools} {
		if err := read(ctx, in); err != nil {
			return 0, err
		}
	}
	disks := map[string][]projection.PoolDisks{}
	for key, sum := range in.disks {
		disks[key.image] = append(disks[key.image], *sum)
	}
	known := projection.Sources{DataVolumes: true, Claims: true, StorageClasses: true, StorageProfiles: true, Pools: true}
	for id, dv := range in.goldens {
		image := projection.WorkerImage(projection.Image{
			ID: id, DataVolume: dv, Claim: in.claims[dv.Claim()], Classes: in.classes, Profiles: in.profiles,
			Pools: in.pools[id], Disks: disks[dv.Claim()], Sources: known,
		}, nil, metav1.NewTime(time.Now()))
		if image.Status.PoolCount != poolsPerImage {
			return 0, fmt.Errorf("%s has %d pools", image.Name, image.Status.PoolCount)
		}
	}
	return len(in.goldens), nil
}

func (j *join) list(ctx context.Context, group, version, resource string) ([]unstructured.Unstructured, error) {
	list, err := j.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// dataVolumes are the goldens, and the worker disks that were cloned from them.
func (j *join) dataVolumes(ctx context.Context, in *inputs) error {
	items, err := j.list(ctx, "cdi.kubevirt.io", "v1beta1", "datavolumes")
	for i := range items {
		o := &items[i]
		if o.GetNamespace() == goldensNamespace {
			if id, ok := golden.ParseName(o.GetName()); ok {
				in.goldens[id] = golden.DataVolumeFrom(o.Object)
			}
			continue
		}
		if disk, ok := pool.DiskFrom(o.Object, goldensNamespace); ok {
			in.add(disk)
		}
	}
	return err
}

func (in *inputs) add(disk pool.Disk) {
	key := diskKey{disk.SourceClaim, disk.Namespace, disk.Pool}
	sum := in.disks[key]
	if sum == nil {
		sum = &projection.PoolDisks{Namespace: disk.Namespace, Pool: disk.Pool, StorageClass: disk.StorageClass}
		in.disks[key] = sum
	}
	switch disk.State {
	case pool.DiskCloned:
		sum.Cloned++
	case pool.DiskCloning:
		sum.Cloning++
	case pool.DiskFailed:
		sum.Failed++
	}
}

// claims are those of the goldens.
func (j *join) claims(ctx context.Context, in *inputs) error {
	list, err := j.kube.CoreV1().PersistentVolumeClaims(goldensNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		claim := &list.Items[i]
		in.claims[claim.Name] = golden.ClaimFrom(claim)
	}
	return nil
}

func (j *join) classes(ctx context.Context, in *inputs) error {
	list, err := j.kube.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		in.classes = append(in.classes, storageclass.FromStorageClass(&list.Items[i]))
	}
	return nil
}

func (j *join) profiles(ctx context.Context, in *inputs) error {
	items, err := j.list(ctx, "cdi.kubevirt.io", "v1beta1", "storageprofiles")
	for i := range items {
		class, strategy := storageclass.StrategyFromProfile(items[i].Object)
		in.profiles.Strategies[class] = strategy
	}
	return err
}

func (j *join) pools(ctx context.Context, in *inputs) error {
	items, err := j.list(ctx, "apps.cozystack.io", "v1alpha1", "kubernetesnodeses")
	for i := range items {
		if p := pool.From(items[i].Object, golden.ID{}); p.Selection.Consumes {
			in.pools[p.Selection.Image] = append(in.pools[p.Selection.Image], p)
		}
	}
	return err
}
