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

package view_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
)

// Guards: that what callers share never holds what one of them may not see.
func TestOnlyWhoSeesAllIsSentTheEncodingThatIsShared(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
	f.authorizer.grant("operator", "*")
	f.authorizer.grant("anna", "tenant-a")
	f.authorizer.grant("both", "tenant-a", "tenant-b")
	for _, test := range []struct {
		user   string
		shared bool
		pools  int
	}{
		{"operator", true, 2},
		{"anna", false, 1},
		{"both", false, 2},
		{"nobody", false, 0},
		{"operator", true, 2},
	} {
		list, err := f.List(as(t, test.user), &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, shared := list.(runtime.CacheableObject); shared != test.shared {
			t.Errorf("%s is sent a %T", test.user, list)
		}
		if n := len(view.Unshared(list).(*images.WorkerImageList).Items[0].Status.Pools); n != test.pools {
			t.Errorf("%s sees %d pools", test.user, n)
		}
	}
}
