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
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	typed "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// Guards: that a follower adopts versions, and waits for one on its way (pkg/storage/memory/lineage.go); that a write
// is answered when it is shown here (Journal.Await); that whoever comes to order continues what it holds
// (Log.Continue), and keeps the times of conditions (projection.ImageAfter).
func TestReplicasServeOneHistory(t *testing.T) {
	s := startStack(t, stack.Options{
		Replicas:   2,
		OneHistory: true,
		Load:       []string{filepath.Join(root, "artifacts", "samples", "stack")},
	})
	p := newPlatform(t, s)
	p.awaitReady(t, nvidiaSample)
	replicas := make([]typed.WorkerImageInterface, 2)
	for i := range replicas {
		client, err := versioned.NewForConfig(s.ReplicaConfig(i))
		if err != nil {
			t.Fatal(err)
		}
		replicas[i] = client.ImagesV1alpha1().WorkerImages()
	}
	label := func(at int, value string) string {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"labels":{"history":%q}}}`, value)
		image, err := replicas[at].Patch(t.Context(), nvidiaSample, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("label through replica %d: %v", at, err)
		}
		if image.Labels["history"] != value {
			t.Errorf("the answer of replica %d shows %q", at, image.Labels["history"])
		}
		return image.ResourceVersion
	}
	// seen is what a watch at a replica from a version shows first.
	seen := func(at int, version string) *v1alpha1.WorkerImage {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := replicas[at].Watch(ctx, metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=" + nvidiaSample})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		event, open := <-w.ResultChan()
		image, isImage := event.Object.(*v1alpha1.WorkerImage)
		if !open || event.Type != watch.Modified || !isImage {
			t.Fatalf("a watch at replica %d from %s: %s %v", at, version, event.Type, event.Object)
		}
		return image
	}

	version := label(0, "start")
	for turn := range 6 {
		at, next := turn%2, (turn+1)%2
		written := label(at, fmt.Sprint(turn))
		if image := seen(next, version); image.ResourceVersion != written {
			t.Errorf("replica %d shows version %s after %s, and replica %d wrote %s", next, image.ResourceVersion, version, at, written)
		}
		version = written
	}

	before, err := replicas[0].Get(t.Context(), nvidiaSample, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var leader int
	await.For(t, "a replica to hold the Lease", func(ctx context.Context) (err error) {
		leader, err = s.HistoryLeader(ctx)
		return err
	})
	survivor := 1 - leader
	if err := s.Processes().Kill(s.Replica(leader)); err != nil {
		t.Fatal(err)
	}
	label(survivor, "survived")
	image := seen(survivor, version)
	if image.Labels["history"] != "survived" {
		t.Errorf("the next that is seen is %q", image.Labels["history"])
	}
	if diff := cmp.Diff(before.Status, image.Status); diff != "" {
		t.Errorf("whoever orders now publishes another status (-before +after):\n%s", diff)
	}
	if err := s.Processes().Restart(s.Replica(leader)); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReplica(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	await.For(t, "the replica that came back to be in the history of the others", func(ctx context.Context) error {
		_, err := replicas[leader].List(ctx, metav1.ListOptions{ResourceVersion: image.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		return err
	})
}
