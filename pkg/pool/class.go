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
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// Class is the StorageClass of a pool's next worker disk.
type Class struct {
	// Name is empty if the pool names none and there is no default.
	Name string
	From images.PoolStorageClassSource
}

// Class returns the class of the pool's next disk. A pool that names none keeps the class of the disks it
// cloned from the golden it selects, wherever the default has moved since.
func (p Pool) Class(cloned string, classes storageclass.Classes) Class {
	switch {
	case p.StorageClass != "":
		return Class{Name: p.StorageClass, From: images.StorageClassDeclared}
	case cloned != "":
		return Class{Name: cloned, From: images.StorageClassClonedDisk}
	}
	name, _ := classes.PoolDefault()
	return Class{Name: name, From: images.StorageClassDefault}
}
