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

package pool

import (
	"math"
	"unique"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	goldenAnnotation = "kubernetes-worker-image.cozystack.io/golden"
	poolAnnotation   = "kubernetes-worker-image.cozystack.io/pool"
)

// DiskFrom reads a DataVolume, and is false for one that is not cloned from a claim in the goldens'
// namespace. It retains nothing of the object but strings.
func DiskFrom(object map[string]any, goldensNamespace string) (Disk, bool) {
	root := freeform.From(object)
	metadata, spec, status := root.Object("metadata"), root.Object("spec"), root.Object("status")
	namespace := metadata.Text("namespace", nameLimit)
	source := spec.Object("source").Object("pvc")
	sourceClaim := source.Text("name", nameLimit)
	sourceNamespace := source.Text("namespace", nameLimit)
	if sourceNamespace == "" {
		sourceNamespace = namespace
	}
	if sourceClaim == "" || sourceNamespace != goldensNamespace {
		return Disk{}, false
	}

	disk := Disk{
		Namespace:    shared(namespace),
		Name:         metadata.Text("name", nameLimit),
		SourceClaim:  shared(sourceClaim),
		Pool:         shared(poolOf(metadata.Object("annotations"), sourceClaim)),
		StorageClass: shared(classOf(spec)),
	}
	disk.ClaimName = disk.Name
	if claim := status.Text("claimName", nameLimit); claim != disk.Name && claim != "" {
		disk.ClaimName = claim
	}
	disk.State, disk.InFlight = progressOf(status)
	return disk, true
}

// poolOf returns the pool that the annotations name, if they name the golden that is cloned. The claim of a
// golden may have another name than the golden has: then any golden's name will do. Annotations are a
// tenant's text: what is too long to be a name counts as absent.
func poolOf(annotations freeform.Object, sourceClaim string) string {
	named := annotations.Text(goldenAnnotation, math.MaxInt)
	pool := annotations.Text(poolAnnotation, math.MaxInt)
	if len(named) > nameLimit || len(pool) > nameLimit {
		return ""
	}
	if named == sourceClaim {
		return pool
	}
	_, sourceIsGolden := golden.ParseName(sourceClaim)
	_, namedIsGolden := golden.ParseName(named)
	if sourceIsGolden || !namedIsGolden {
		return ""
	}
	return pool
}

func classOf(spec freeform.Object) string {
	if storage := spec.Object("storage"); storage.Exists() {
		return storage.Text("storageClassName", nameLimit)
	}
	return spec.Object("pvc").Text("storageClassName", nameLimit)
}

// progressOf tells how far a clone is and whether it still needs its golden. A clone that CDI holds back for
// a reason that will not pass by itself has failed, but goes on as soon as somebody removes the reason.
func progressOf(status freeform.Object) (state DiskState, inFlight bool) {
	switch cdiv1.DataVolumePhase(status.Text("phase", wordLimit)) {
	case cdiv1.Succeeded:
		return DiskCloned, false
	case cdiv1.Failed:
		return DiskFailed, false
	}
	for _, condition := range status.Objects("conditions") {
		if condition.Text("status", wordLimit) != "False" {
			continue
		}
		switch condition.Text("reason", wordLimit) {
		case "CloneValidationFailed", "ErrClaimNotValid":
			return DiskFailed, true
		}
	}
	return DiskCloning, true
}

// shared returns the one copy of a string that many disks have in common.
func shared(text string) string {
	return unique.Make(text).Value()
}
