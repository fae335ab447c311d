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

package workerimage_test

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
)

const dataImage = "data.workerimage_worker_image.this"

// images is a cluster with three schematics.
func images(t *testing.T) *imagestest.Server {
	return imagestest.NewServer(t,
		imagestest.Image("gpu", "v1.13.9"),
		imagestest.Image("gpu", "v1.13.10"),
		imagestest.Image("gpu", "v1.14.0", imagestest.Importing(40)),
		imagestest.Image("edge", "v1.13.10", imagestest.OnClass("local")),
		imagestest.Image("zfs", "v1.13.10", imagestest.In(v1alpha1.WorkerImageFailed, "ImportFailed", "The import failed. CDI: no space left on device")),
	)
}

func TestAnImageIsPicked(t *testing.T) {
	server := images(t)
	for name, test := range map[string]struct{ arguments, want string }{
		"by its name":                    {`name = "talos-worker-gpu-v1.13.9"`, "talos-worker-gpu-v1.13.9"},
		"by its schematic and version":   {`schematic_id = "gpu", version = "v1.13.9"`, "talos-worker-gpu-v1.13.9"},
		"by its class":                   {`storage_class = "local"`, "talos-worker-edge-v1.13.10"},
		"as the newest that is ready":    {`schematic_id = "gpu", ready_only = true, most_recent = true`, "talos-worker-gpu-v1.13.10"},
		"as the newest of all":           {`schematic_id = "gpu", most_recent = true`, "talos-worker-gpu-v1.14.0"},
		"as the newest of a minor":       {`schematic_id = "gpu", version_constraint = "~> 1.13.0", most_recent = true`, "talos-worker-gpu-v1.13.10"},
		"and waited for if it is needed": {`name = "talos-worker-gpu-v1.13.9", wait_for = "Ready"`, "talos-worker-gpu-v1.13.9"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, server, resource.TestStep{
				Config: data("worker_image", test.arguments),
				Check:  resource.TestCheckResourceAttr(dataImage, "name", test.want),
			})
		})
	}
}

func TestAnImageThatIsNotPickedIsAnErrorThatHelps(t *testing.T) {
	server := images(t)
	for name, test := range map[string]struct{ arguments, says string }{
		"a name nearly right":            {`name = "talos-worker-gpu-v1.13.8"`, "The nearest names are: - talos-worker-gpu-v1.13.9"},
		"several":                        {`schematic_id = "gpu"`, "3 worker images match where one is asked for: - talos-worker-gpu-v1.14.0 (Importing, replicated)"},
		"none":                           {`schematic_id = "iscsi"`, `No worker image matches schematic_id = "iscsi". These exist:`},
		"none that is ready":             {`version = "v1.14.0", ready_only = true`, `wait_for = "Ready" in the place of ready_only waits for it`},
		"failed while it is waited for":  {`name = "talos-worker-zfs-v1.13.10", wait_for = "Ready"`, "worker image talos-worker-zfs-v1.13.10 is Failed, ImportFailed: The import failed. CDI: no space left on device"},
		"late":                           {`version = "v1.14.0", wait_for = "Ready", timeouts = { read = "200ms" }`, "is still Importing (40%), Importing: The image is being imported. after 200ms"},
		"a timeout and nothing to await": {`version = "v1.14.0", timeouts = { read = "200ms" }`, "Nothing to wait for"},
		"a name and a filter":            {`name = "a", version = "v1.13.9"`, "Invalid Attribute Combination"},
		"no constraint":                  {`version_constraint = "newest"`, "Not a version constraint"},
		"a state nobody can wait for":    {`name = "a", wait_for = "Failed"`, `value must be one of: ["Ready"]`},
		"ready, and waited for":          {`ready_only = true, wait_for = "Ready"`, "Invalid Attribute Combination"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, server, resource.TestStep{Config: data("worker_image", test.arguments), ExpectError: says(test.says)})
		})
	}
}

func TestEveryFieldIsKnown(t *testing.T) {
	replicated, three := "replicated", int32(3)
	image := imagestest.Image("gpu", "v1.13.10", func(image *v1alpha1.WorkerImage) {
		image.Labels = map[string]string{"team": "a"}
		image.Status.DataVolume = &v1alpha1.DataVolumeStatus{Namespace: "cozy-public", Name: image.Name, Phase: "Succeeded", RestartCount: 2}
		image.Status.Claim = &v1alpha1.ClaimStatus{Name: image.Name, Phase: corev1.ClaimBound}
		image.Status.Source = &v1alpha1.ImageSource{URL: "https://factory.talos.dev/image"}
		image.Status.Storage = &v1alpha1.StorageStatus{Requested: "6Gi", Capacity: "6Gi", VolumeMode: corev1.PersistentVolumeBlock,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}
		image.Status.StorageClass = &v1alpha1.StorageClassStatus{Bound: &replicated, Effective: replicated}
		image.Status.CloneStrategy = "csi-clone"
		image.Status.Catalog = &v1alpha1.CatalogStatus{Declared: true, Drift: []v1alpha1.CatalogDrift{{Field: "storage", Catalog: "8Gi", Live: "6Gi"}}}
		image.Status.PoolCount = 1
		image.Status.Pools = []v1alpha1.PoolStatus{{Namespace: "tenant-a", Name: "k1-md0", Cluster: "k1", MaxReplicas: &three,
			StorageClass: &v1alpha1.PoolStorageClass{Name: replicated, From: v1alpha1.StorageClassDefault},
			Disks:        v1alpha1.DiskCounts{Cloned: 3}, Cloneable: metav1.ConditionTrue, Reason: "StorageClassMatch"}}
	})
	status := knownvalue.ObjectExact(map[string]knownvalue.Check{
		"phase": knownvalue.StringExact("Ready"), "ready": knownvalue.Bool(true), "progress": knownvalue.Null(),
		"data_volume": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"namespace": knownvalue.StringExact("cozy-public"), "name": knownvalue.StringExact(image.Name),
			"phase": knownvalue.StringExact("Succeeded"), "restart_count": knownvalue.Int64Exact(2)}),
		"claim":      knownvalue.ObjectExact(map[string]knownvalue.Check{"name": knownvalue.StringExact(image.Name), "phase": knownvalue.StringExact("Bound")}),
		"source_url": knownvalue.StringExact("https://factory.talos.dev/image"),
		"storage": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"requested": knownvalue.StringExact("6Gi"), "capacity": knownvalue.StringExact("6Gi"), "volume_mode": knownvalue.StringExact("Block"),
			"access_modes": knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("ReadWriteMany")})}),
		"storage_class": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"declared": knownvalue.Null(), "bound": knownvalue.StringExact(replicated), "effective": knownvalue.StringExact(replicated)}),
		"clone_strategy": knownvalue.StringExact("csi-clone"),
		"catalog": knownvalue.ObjectExact(map[string]knownvalue.Check{"declared": knownvalue.Bool(true),
			"drift": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
				"field": knownvalue.StringExact("storage"), "catalog": knownvalue.StringExact("8Gi"), "live": knownvalue.StringExact("6Gi")})})}),
		"pool_count": knownvalue.Int64Exact(1),
		"pools": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
			"namespace": knownvalue.StringExact("tenant-a"), "name": knownvalue.StringExact("k1-md0"), "cluster": knownvalue.StringExact("k1"),
			"min_replicas": knownvalue.Null(), "max_replicas": knownvalue.Int64Exact(3), "kubernetes_version": knownvalue.Null(), "disk_size": knownvalue.Null(),
			"storage_class": knownvalue.ObjectExact(map[string]knownvalue.Check{"name": knownvalue.StringExact(replicated), "from": knownvalue.StringExact("Default")}),
			"disks":         knownvalue.ObjectExact(map[string]knownvalue.Check{"cloned": knownvalue.Int64Exact(3), "cloning": knownvalue.Int64Exact(0), "failed": knownvalue.Int64Exact(0)}),
			"cloneable":     knownvalue.StringExact("True"), "reason": knownvalue.StringExact("StorageClassMatch"), "message": knownvalue.Null()})}),
		"conditions": knownvalue.MapExact(map[string]knownvalue.Check{"Ready": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"status": knownvalue.StringExact("True"), "reason": knownvalue.StringExact("Ready"), "message": knownvalue.Null(),
			"last_transition_time": knownvalue.StringExact("2026-11-30T12:00:00Z")})}),
	})
	labels := knownvalue.MapExact(map[string]knownvalue.Check{"team": knownvalue.StringExact("a")})
	run(t, imagestest.NewServer(t, image), resource.TestStep{
		Config: data("worker_image", `name = "`+image.Name+`"`) + data("worker_images", ""),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(dataImage, tfjsonpath.New("status"), status),
			statecheck.ExpectKnownValue(dataImage, tfjsonpath.New("labels"), labels),
			statecheck.ExpectKnownValue(dataImage, tfjsonpath.New("creation_timestamp"), knownvalue.StringExact("2026-11-30T12:00:00Z")),
			statecheck.ExpectKnownValue("data.workerimage_worker_images.this", tfjsonpath.New("images").AtSliceIndex(0).AtMapKey("status"), status),
			statecheck.ExpectKnownValue("data.workerimage_worker_images.this", tfjsonpath.New("images").AtSliceIndex(0).AtMapKey("labels"), labels),
		},
	})
}

func TestImagesAreListedNewestFirst(t *testing.T) {
	list := "data.workerimage_worker_images.this"
	server := images(t)
	run(t, server,
		resource.TestStep{
			Config: data("worker_images", `schematic_id = "gpu"`),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(list, "images.#", "3"),
				resource.TestCheckResourceAttr(list, "images.0.version", "v1.14.0"),
				resource.TestCheckResourceAttr(list, "images.1.version", "v1.13.10"),
				resource.TestCheckResourceAttr(list, "images.2.version", "v1.13.9")),
		},
		resource.TestStep{
			Config: data("worker_images", `version_constraint = ">= 1.13.10", ready_only = true, storage_class = "local"`),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(list, "images.#", "1"),
				resource.TestCheckResourceAttr(list, "images.0.name", "talos-worker-edge-v1.13.10")),
		},
		resource.TestStep{
			Config: data("worker_images", `schematic_id = "iscsi"`),
			Check:  resource.TestCheckResourceAttr(list, "images.#", "0"),
		})
}

func TestTheCatalogIsListed(t *testing.T) {
	server := imagestest.NewServer(t)
	for version, declared := range map[string]bool{"v1.13.9": true, "v1.13.10": true, "v1.12.0": false} {
		entry := &v1alpha1.CatalogEntry{Spec: v1alpha1.CatalogEntrySpec{SchematicID: "gpu", Version: version, Storage: "6Gi"}}
		entry.Name = "talos-worker-gpu-" + version
		entry.Status = v1alpha1.CatalogEntryStatus{Declared: declared, Phase: v1alpha1.CatalogEntryAvailable}
		server.PutEntry(entry)
	}
	catalog := "data.workerimage_worker_image_catalog.this"
	run(t, server,
		resource.TestStep{
			Config: data("worker_image_catalog", ""),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(catalog, "entries.#", "3"),
				resource.TestCheckResourceAttr(catalog, "entries.0.name", "talos-worker-gpu-v1.13.10"),
				resource.TestCheckResourceAttr(catalog, "entries.0.storage", "6Gi"),
				resource.TestCheckNoResourceAttr(catalog, "entries.0.storage_class_name"),
				resource.TestCheckResourceAttr(catalog, "entries.0.status.phase", "Available"),
				resource.TestCheckResourceAttr(catalog, "entries.2.declared", "false")),
		},
		resource.TestStep{
			Config: data("worker_image_catalog", `declared_only = true, version_constraint = "< 1.13.10"`),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(catalog, "entries.#", "1"),
				resource.TestCheckResourceAttr(catalog, "entries.0.version", "v1.13.9")),
		})
}

func TestAnImportInProgressChangesNoPlan(t *testing.T) {
	server := images(t)
	config := data("worker_image", `version = "v1.14.0"`) + `
output "pinned" {
  value = data.workerimage_worker_image.this.version
}`
	run(t, server,
		resource.TestStep{Config: config, Check: resource.TestCheckResourceAttr(dataImage, "status.progress", "40")},
		resource.TestStep{
			PreConfig:        func() { server.Put(imagestest.Image("gpu", "v1.14.0", imagestest.Importing(70))) },
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check:            resource.TestCheckResourceAttr(dataImage, "status.progress", "70"),
		})
}

func TestAnImageThatIsImportedIsWaitedFor(t *testing.T) {
	server := images(t)
	// What the watch is asked for is what the plan waits on: the image is ready from then on.
	server.Intrude(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			server.Put(imagestest.Image("gpu", "v1.14.0"))
		}
		return false
	})
	run(t, server, resource.TestStep{
		Config: data("worker_image", `schematic_id = "gpu", most_recent = true, wait_for = "Ready", timeouts = { read = "1m" }`),
		Check: resource.ComposeAggregateTestCheckFunc(
			resource.TestCheckResourceAttr(dataImage, "version", "v1.14.0"),
			resource.TestCheckResourceAttr(dataImage, "status.ready", "true")),
	})
}

// data is a data source with arguments that are separated by ", ".
func data(kind, arguments string) string {
	return "\ndata \"workerimage_" + kind + "\" \"this\" {\n" + lines(arguments) + "\n}\n"
}

// lines breaks arguments, but not the values in braces or quotes.
func lines(arguments string) string {
	var text []rune
	quoted, depth := false, 0
	for _, r := range arguments {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && !quoted && depth == 0:
			r = '\n'
		}
		text = append(text, r)
	}
	return string(text)
}
