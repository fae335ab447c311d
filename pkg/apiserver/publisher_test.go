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

package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// The inventory compares the next image with the one that it published last.
func TestPublishingAnImageDoesNotModifyIt(t *testing.T) {
	p := publisher{log: memory.NewLog(memory.LogOptions{First: 1, Attrs: storage.DefaultClusterScopedAttr})}
	image := &images.WorkerImage{ObjectMeta: metav1.ObjectMeta{Name: "talos-worker-aaa-v1.13.6", UID: "1"}}
	before := image.DeepCopy()
	if err := p.Publish(image.Name, image); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, image); diff != "" {
		t.Errorf("the image changed (-before +after):\n%s", diff)
	}
}
