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
	"testing"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

func TestClassOfAPool(t *testing.T) {
	nvme := storageclass.Classes{{Name: "nvme", Default: true}, {Name: "repl"}}
	for _, test := range []struct {
		name     string
		declared string
		cloned   string
		classes  storageclass.Classes
		want     Class
	}{
		{
			name:     "a declared class is compared, whatever the disks are on",
			declared: "local", cloned: "repl", classes: nvme,
			want: Class{Name: "local", From: images.StorageClassDeclared},
		},
		{
			name:   "a pool that names none keeps the class of its disks when the default moves",
			cloned: "repl", classes: nvme,
			want: Class{Name: "repl", From: images.StorageClassClonedDisk},
		},
		{
			name:    "a pool without disks gets today's default",
			classes: nvme,
			want:    Class{Name: "nvme", From: images.StorageClassDefault},
		},
		{
			name:    "the virt default is the pool chart's first choice",
			classes: append(storageclass.Classes{{Name: "virt", VirtDefault: true}}, nvme...),
			want:    Class{Name: "virt", From: images.StorageClassDefault},
		},
		{
			name: "without a default the class is not known",
			want: Class{From: images.StorageClassDefault},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (Pool{StorageClass: test.declared}).Class(test.cloned, test.classes); got != test.want {
				t.Errorf("Class = %v, want %v", got, test.want)
			}
		})
	}
}
