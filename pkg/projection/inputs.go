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
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// Image is everything known about one image name. Nothing in it is modified.
type Image struct {
	ID golden.ID
	// DataVolume of that name in the goldens' namespace; nil where there is none.
	DataVolume *golden.DataVolume
	// Claim that the DataVolume names, or else the one of the golden's name, whoever owns it; nil where
	// there is none.
	Claim *golden.Claim

	Classes  storageclass.Classes
	Profiles storageclass.Profiles

	// Pools that ask for the image, in any order.
	Pools []pool.Pool
	// Disks that were cloned from it, added up by namespace and pool annotation, in any order.
	Disks []PoolDisks
	// Clones counts the clones in flight that belong to no pool.
	Clones int

	Catalog Declaration

	Sources Sources
}

// Declaration is what the catalog says about an image. Either part says that the catalog has an entry.
type Declaration struct {
	// Entry that is in force; nil where none is.
	Entry *catalog.Entry
	// Rejections of the entries that are not.
	Rejections []catalog.Rejection
}

// Present is true if the catalog has an entry, in force or not.
func (d Declaration) Present() bool { return d.Entry != nil || len(d.Rejections) > 0 }

// Entry is everything known about what may be a catalog entry.
type Entry struct {
	Image
	// WorkerImage that Image amounts to; nil where there is none.
	WorkerImage *images.WorkerImage
}

// PoolDisks adds up the worker disks of one pool that are clones of one image.
type PoolDisks struct {
	Namespace string
	// Pool is the value of the pool annotation.
	Pool     string
	Cloned   int32
	Cloning  int32
	Failed   int32
	InFlight int32
	// StorageClass that most of the cloned disks sit on, the first by name among equals; empty where no
	// disk is cloned or none tells.
	StorageClass string
}

// Sources says which kinds can be read now. What was read before stays in the inputs.
type Sources struct {
	DataVolumes     bool
	Claims          bool
	StorageClasses  bool
	StorageProfiles bool
	Pools           bool
	Catalog         bool
}
