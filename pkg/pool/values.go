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
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// Pool is what the rules read of a KubernetesNodes object. It must not be modified once it is shared.
type Pool struct {
	Namespace string
	Name      string
	Cluster   string
	// DiskPool is the value of the pool annotation on the pool's worker disks.
	DiskPool string

	Selection Selection

	// StorageClass that the pool declares; empty for the default.
	StorageClass string
	// DiskSize of a worker as it was written, or the chart's default.
	DiskSize          string
	KubernetesVersion string
	MinReplicas       *int32
	MaxReplicas       *int32
}

// Selection is the image that a pool asks for.
type Selection struct {
	// Consumes is true when the pool boots its workers from a golden.
	Consumes bool
	// Image is the pair that the golden's name is made of, legal or not.
	Image golden.ID
	// Invalid says why the chart refuses the selection; empty for a valid one.
	Invalid string
}

// DiskState is how far the clone of a worker disk is.
type DiskState uint8

const (
	// DiskCloning is every phase before Succeeded.
	DiskCloning DiskState = iota
	// DiskCloned is complete, and independent of its golden.
	DiskCloned
	// DiskFailed has failed, or waits for something that will not pass by itself.
	DiskFailed
)

// Disk is what the rules read of a DataVolume that is cloned from a claim in the goldens' namespace. A
// cluster has a hundred thousand of them, so it holds nothing else.
type Disk struct {
	Namespace string
	Name      string
	// SourceClaim is the claim that the disk is cloned from, in the goldens' namespace.
	SourceClaim string
	// Pool is the value of the pool annotation. It is empty for a clone that belongs to no pool: one that
	// lacks the annotations, or whose annotations name another golden than its source is.
	Pool  string
	State DiskState
	// InFlight is true while the clone still needs its golden.
	InFlight bool
	// StorageClass that the spec names; empty where it is silent.
	StorageClass string
	// ClaimName is the disk's own claim.
	ClaimName string
}
