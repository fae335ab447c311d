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
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
)

// othersPools adds pools of another tenant that differ in all that a pool can differ in.
func othersPools(in *Image) {
	small, elsewhere, silent, illegal := consumer("tenant-b", "small"), consumer("tenant-b", "elsewhere"), consumer("tenant-b", "silent"), consumer("tenant-b", "illegal")
	small.DiskSize = "1Gi"
	elsewhere.StorageClass = "local"
	silent.StorageClass = ""
	illegal.Selection.Invalid = "it is not legal"
	in.Pools = append(in.Pools, small, elsewhere, silent, illegal)
	in.Disks = append(in.Disks,
		PoolDisks{Namespace: "tenant-b", Pool: "kubernetes-silent", Cloned: 7, Failed: 2, StorageClass: "local"},
		PoolDisks{Namespace: "tenant-b", Pool: "kubernetes-gone", Cloned: 1},
	)
}

// ignorePools leaves out what a caller's view is computed from.
var ignorePools = cmp.Options{
	cmpopts.IgnoreFields(images.WorkerImageStatus{}, "Pools", "PoolCount"),
	cmpopts.IgnoreFields(images.CatalogEntryStatus{}, "Pools", "PoolCount"),
}

// Guards: that no field or condition counts or names the pools.
//
// Who may not see a pool is shown an object without it, and must not learn from the rest which pools there are or
// how many.
func TestNothingButThePoolsDependsOnWhichPoolsThereAre(t *testing.T) {
	for name, given := range map[string]func() Image{"an image that is there": ready, "an image that is missing": missing} {
		t.Run(name, func(t *testing.T) {
			few := given()
			few.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
			many := few
			othersPools(&many)
			if diff := cmp.Diff(WorkerImage(few, nil, now), WorkerImage(many, nil, now), ignorePools); diff != "" {
				t.Errorf("the WorkerImage differs (-few +many):\n%s", diff)
			}
			if diff := cmp.Diff(entryOf(few), entryOf(many), ignorePools); diff != "" {
				t.Errorf("the CatalogEntry differs (-few +many):\n%s", diff)
			}
		})
	}
}

// Guards: that nothing of an image but InUse and Deletable depends on there being pools.
func TestThatThereArePoolsShowsInTheConditionsThatSaySoAndNowhereElse(t *testing.T) {
	none, some := ready(), ready()
	othersPools(&some)
	ignoreUse := cmpopts.IgnoreSliceElements(func(c metav1.Condition) bool {
		return c.Type == images.ConditionInUse || c.Type == images.ConditionDeletable
	})
	if diff := cmp.Diff(WorkerImage(none, nil, now), WorkerImage(some, nil, now), ignorePools, ignoreUse); diff != "" {
		t.Errorf("the WorkerImage differs (-none +some):\n%s", diff)
	}
}
