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
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

func TestAnImportThatKeepsFailing(t *testing.T) {
	p := realPlatform(t)
	image := p.awaitImage(t, unpublishedSample, "restarted often", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.DataVolume.RestartCount >= 3
	})
	equal(t, image.Status.Phase, v1alpha1.WorkerImageImporting)
	ready := condition(image, v1alpha1.ConditionReady)
	equal(t, ready.Status, metav1.ConditionFalse)
	equal(t, ready.Reason, "ImportRetrying")
	if !strings.Contains(ready.Message, "Unable to connect to http data source: expected status code 200, got 404") {
		t.Errorf("the importer's words are not in %q", ready.Message)
	}
	pool := poolOf(image, "tenant-c", "lab-zfs")
	equal(t, pool.Cloneable, metav1.ConditionFalse)
	equal(t, pool.Reason, "GoldenFailing")
}

func TestAnImportThatFailsAndComesRight(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	name := objects.NameOf(refused)
	events := p.watch(t, "&fieldSelector=metadata.name="+name, wire.JSON)
	golden := objects.Set(objects.NewGolden(refused), "https://mirror:hunter2@factory.talos.dev/image/"+refused+"/v1.13.6/openstack-amd64.raw.xz?key=hunter3", "spec", "source", "http", "url")
	p.createGolden(t, golden)
	retried := false
	for _, f := range untilReady(t, events) {
		image := f.Image(t)
		retried = retried || condition(image, v1alpha1.ConditionReady).Reason == "ImportRetrying"
		if image.Status.Phase == v1alpha1.WorkerImageFailed {
			t.Errorf("a failure that passes is final: %s", f.Raw)
		}
		if strings.Contains(string(f.Raw), "hunter") {
			t.Errorf("credentials are shown: %s", f.Raw)
		}
	}
	if !retried {
		t.Error("it did not retry")
	}
}

func TestAClassThatAppearsHealsAGolden(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	const schematic = "classless"
	name := objects.NameOf(schematic)
	p.createGolden(t, objects.Set(objects.NewGolden(schematic), "not-yet", "spec", "storage", "storageClassName"))
	for _, name := range []string{name, classlessSample} {
		image := p.awaitImage(t, name, "without a class", func(image *v1alpha1.WorkerImage) bool {
			return condition(image, v1alpha1.ConditionReady).Reason == "StorageClassNotFound"
		})
		equal(t, image.Status.Phase, v1alpha1.WorkerImagePending)
	}
	p.Create(t, objects.StorageClasses, objects.NewClass("not-yet"))
	image := p.awaitReady(t, name)
	equal(t, *image.Status.StorageClass.Bound, "not-yet")
}

func TestThePoolsOfTheSamples(t *testing.T) {
	p := settledPlatform(t)
	for _, test := range []struct {
		name            string
		image           string
		tenant, pool    string
		cloneable       metav1.ConditionStatus
		reason          string
		class           string
		from            v1alpha1.PoolStorageClassSource
		messageContains string
	}{
		{"on the class of its image", defaultSample, "tenant-a", "prod-md0", "True", "StorageClassMatch", "replicated", "Declared", ""},
		{"on another class", defaultSample, "tenant-b", "staging-md0", "False", "StorageClassMismatch", "local", "Declared", "replicated"},
		{"on the class of the disk it has cloned", defaultSample, "tenant-c", "lab-md0", "True", "StorageClassMatch", "replicated", "ClonedDisk", ""},
		{"without a worker", nvidiaSample, "tenant-a", "prod-gpu", "True", "StorageClassMatch", "replicated", "Declared", ""},
		{"with a disk that is too small", nvidiaSample, "tenant-b", "staging-small", "False", "DiskTooSmall", "replicated", "Declared", "6Gi"},
		{"on the default, where its image is too", edgeSample, "tenant-a", "prod-edge", "True", "StorageClassMatch", "local", "Default", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			image := p.awaitImage(t, test.image, "as expected of "+test.pool, func(image *v1alpha1.WorkerImage) bool {
				return poolOf(image, test.tenant, test.pool).Reason == test.reason && string(poolOf(image, test.tenant, test.pool).StorageClass.From) == string(test.from)
			})
			pool := poolOf(image, test.tenant, test.pool)
			equal(t, pool.Cloneable, test.cloneable)
			equal(t, *pool.StorageClass, v1alpha1.PoolStorageClass{Name: test.class, From: test.from})
			if !strings.Contains(pool.Message, test.messageContains) || (pool.Message == "") != (pool.Cloneable == metav1.ConditionTrue) {
				t.Errorf("the message is %q", pool.Message)
			}
		})
	}
}

func TestVerdictsFollowWhatTheyDependOn(t *testing.T) {
	p := realPlatform(t)
	const schematic = "judged"
	name := objects.NameOf(schematic)
	reason := func(pool, reason string) func(*v1alpha1.WorkerImage) bool {
		return func(image *v1alpha1.WorkerImage) bool { return poolOf(image, "tenant-a", pool).Reason == reason }
	}
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "judged", "md0", "replicated", schematic))
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "judged", "frozen", "", schematic))
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "judged", "fresh", "", schematic))
	if err := p.gone(t.Context(), name); err != nil {
		t.Fatalf("an image that pools ask for and nobody made: %v", err)
	}
	p.createGolden(t, objects.NewGolden(schematic))
	p.awaitImage(t, name, "importing for its pools", reason("judged-md0", "GoldenImporting"))
	p.awaitReady(t, name)
	p.awaitImage(t, name, "cloneable", reason("judged-md0", "StorageClassMatch"))

	p.Patch(t, objects.Pools, "tenant-a", "judged-md0", `{"spec":{"diskSize":"5Gi"}}`)
	p.awaitImage(t, name, "too large", reason("judged-md0", "DiskTooSmall"))
	p.Patch(t, objects.Pools, "tenant-a", "judged-md0", `{"spec":{"diskSize":"6Gi"}}`)
	p.awaitImage(t, name, "small enough", reason("judged-md0", "StorageClassMatch"))

	p.Create(t, objects.DataVolumes, objects.NewDisk("tenant-a", "judged", "frozen", "x", schematic))
	p.awaitImage(t, name, "cloned", func(image *v1alpha1.WorkerImage) bool {
		return poolOf(image, "tenant-a", "judged-frozen").Disks.Cloned == 1
	})
	checkClass(t, p, name, "judged-frozen", "StorageClassMatch", "replicated", v1alpha1.StorageClassClonedDisk)
	checkClass(t, p, name, "judged-fresh", "StorageClassMismatch", "local", v1alpha1.StorageClassDefault)

	p.Patch(t, objects.StorageClasses, "", "replicated", `{"metadata":{"annotations":{"`+objects.VirtDefaultClass+`":"true"}}}`)
	t.Cleanup(func() { p.unmark(t, "replicated") })
	checkClass(t, p, name, "judged-fresh", "StorageClassMatch", "replicated", v1alpha1.StorageClassDefault)
	checkClass(t, p, name, "judged-frozen", "StorageClassMatch", "replicated", v1alpha1.StorageClassClonedDisk)
	newest := objects.NewClass("judged-nvme")
	newest.SetAnnotations(map[string]string{objects.VirtDefaultClass: "true"})
	p.Create(t, objects.StorageClasses, newest)
	checkClass(t, p, name, "judged-fresh", "StorageClassMismatch", "judged-nvme", v1alpha1.StorageClassDefault)
	checkClass(t, p, name, "judged-frozen", "StorageClassMatch", "replicated", v1alpha1.StorageClassClonedDisk)

	p.Remove(t, objects.DataVolumes, objects.Goldens, name)
	p.awaitGone(t, name)
}

// checkClass waits until a pool of tenant-a is judged on a class.
func checkClass(t *testing.T, p *platform, image, pool, reason, class string, from v1alpha1.PoolStorageClassSource) {
	t.Helper()
	p.awaitImage(t, image, pool+" judged on "+class, func(image *v1alpha1.WorkerImage) bool {
		got := poolOf(image, "tenant-a", pool)
		return got.Reason == reason && *got.StorageClass == v1alpha1.PoolStorageClass{Name: class, From: from}
	})
}

func (p *platform) unmark(t *testing.T, class string) {
	t.Helper()
	p.Patch(t, objects.StorageClasses, "", class, `{"metadata":{"annotations":{"`+objects.VirtDefaultClass+`":null}}}`)
}

// Before CDI v1.62 a finished DataVolume could be deleted and leave its claim, and an orphaning delete still does.
func TestAClaimAloneIsStillAnImage(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	const schematic = "orphan"
	name := objects.NameOf(schematic)
	p.createGolden(t, objects.NewGolden(schematic))
	t.Cleanup(func() { p.Remove(t, objects.Claims, objects.Goldens, name) })
	before := p.awaitReady(t, name)
	events := p.watch(t, "&fieldSelector=metadata.name="+name+"&resourceVersion="+before.ResourceVersion, wire.JSON)
	p.kubectl.run(t, "delete", "datavolume", "-n", objects.Goldens, name, "--cascade=orphan")
	for {
		f := events.Next(t)
		image := f.Image(t)
		if f.Type == "DELETED" {
			t.Fatalf("it is gone: %s", f.Raw)
		}
		if image.Status.DataVolume == nil {
			equal(t, image.Status.Phase, v1alpha1.WorkerImageReady)
			equal(t, image.Status.Claim.Name, name)
			equal(t, image.UID, before.UID)
			return
		}
	}
}

func TestAGoldenThatWaitsForItsFirstConsumer(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	const schematic = "waiting"
	golden := objects.Set(objects.NewGolden(schematic), "local", "spec", "storage", "storageClassName")
	golden.SetAnnotations(nil)
	p.createGolden(t, golden)
	image := p.awaitImage(t, objects.NameOf(schematic), "waiting", func(image *v1alpha1.WorkerImage) bool {
		return condition(image, v1alpha1.ConditionReady).Reason == "WaitForFirstConsumer"
	})
	equal(t, image.Status.Phase, v1alpha1.WorkerImagePending)
}
