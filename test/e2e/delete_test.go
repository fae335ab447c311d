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
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

func TestAnImageThatAPoolAsksForIsKept(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "pinned")
	p.createImage(t, "pinned")
	p.awaitReady(t, objects.NameOf("pinned"))
	pool := objects.NewPool("tenant-a", "idle", "md0", "replicated", "pinned")
	p.Create(t, objects.Pools, pool)
	p.awaitImage(t, objects.NameOf("pinned"), "in use", func(image *v1alpha1.WorkerImage) bool {
		return condition(image, v1alpha1.ConditionDeletable).Status == metav1.ConditionFalse
	})
	for _, args := range [][]string{
		{"delete", "workerimage", objects.NameOf("pinned")},
		{"delete", "workerimage", objects.NameOf("pinned"), "--dry-run=server"},
	} {
		if said := p.kubectl.refused(t, args...); !strings.Contains(said, "(Conflict)") || !strings.Contains(said, "tenant-a/idle-md0") {
			t.Errorf("kubectl %s: %s", strings.Join(args, " "), said)
		}
	}

	p.Remove(t, objects.Pools, "tenant-a", "idle-md0")
	image := p.awaitImage(t, objects.NameOf("pinned"), "deletable", func(image *v1alpha1.WorkerImage) bool {
		return condition(image, v1alpha1.ConditionDeletable).Status == metav1.ConditionTrue
	})
	p.kubectl.run(t, "delete", "workerimage", image.Name, "--dry-run=server")
	events := p.watch(t, "&fieldSelector=metadata.name="+image.Name+"&resourceVersion="+image.ResourceVersion, wire.JSON)
	// kubectl waits until it is gone.
	p.kubectl.run(t, "delete", "workerimage", image.Name)
	if p.exists(t, objects.DataVolumes, objects.Goldens, image.Name) || p.exists(t, objects.Claims, objects.Goldens, image.Name) {
		t.Error("its DataVolume or its claim is still there")
	}
	checkRetirement(t, events, image.UID)
}

// checkRetirement makes sure that an image is Terminating until it is gone.
func checkRetirement(t *testing.T, events *wire.Watch, uid types.UID) {
	t.Helper()
	terminating := false
	for {
		f := events.Next(t)
		image := f.Image(t)
		checkUID(t, "the image", image, uid)
		switch {
		case f.Type == watch.Deleted && terminating:
			return
		case f.Type == watch.Modified && image.Status.Phase == v1alpha1.WorkerImageTerminating:
			terminating = true
			if deletable := condition(image, v1alpha1.ConditionDeletable); deletable.Status != metav1.ConditionTrue {
				t.Errorf("Deletable is %+v", deletable)
			}
		default:
			t.Fatalf("%s %s", f.Type, f.Raw)
		}
	}
}

// The claim of an import that has not ended is nothing by itself.
func TestAnImportThatIsBrokenOffIsTerminatingUntilItsClaimIsGone(t *testing.T) {
	p := realPlatform(t)
	const schematic = "stuck-forever"
	p.declare(t, schematic)
	p.createImage(t, schematic)
	image := p.awaitImage(t, objects.NameOf(schematic), "stuck", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.Progress != nil && *image.Status.Progress > 0
	})
	events := p.watch(t, "&fieldSelector=metadata.name="+image.Name+"&resourceVersion="+image.ResourceVersion, wire.JSON)
	p.kubectl.run(t, "delete", "workerimage", image.Name)
	if p.exists(t, objects.Claims, objects.Goldens, image.Name) {
		t.Error("its claim is still there")
	}
	checkRetirement(t, events, image.UID)
}

func TestAClaimWithoutADataVolumeIsLabelledAndRetired(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "orphaned")
	created := p.createImage(t, "orphaned")
	p.awaitReady(t, created.Name)
	t.Cleanup(func() { p.Remove(t, objects.Claims, objects.Goldens, created.Name) })
	err := p.Resource(objects.DataVolumes, objects.Goldens).Delete(t.Context(), created.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)})
	if err != nil {
		t.Fatal(err)
	}
	p.awaitImage(t, created.Name, "a claim only", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.DataVolume == nil && image.Status.Phase == v1alpha1.WorkerImageReady
	})
	p.kubectl.run(t, "label", "workerimage", created.Name, "team=a")
	image := p.image(t, "orphaned")
	if image.Labels["team"] != "a" || image.UID != created.UID {
		t.Errorf("labels %v, uid %s after %s", image.Labels, image.UID, created.UID)
	}
	if refused := p.post(t, "", imageManifest("orphaned", "")); refused.Status != 409 {
		t.Errorf("a create is answered %d %s", refused.Status, refused.Body)
	}
	p.kubectl.run(t, "delete", "workerimage", created.Name)
	if p.exists(t, objects.Claims, objects.Goldens, created.Name) {
		t.Error("its claim is still there")
	}
}

func TestDeleteCollectionDeletesWhatMayBeDeleted(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "stuck-a", "stuck-b", "stuck-c")
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "idle", "md1", "replicated", "stuck-b"))
	for _, schematic := range []string{"stuck-a", "stuck-b", "stuck-c"} {
		image := newImage(schematic)
		image.Labels = map[string]string{"made-for": "deletecollection"}
		if _, err := p.images.Create(t.Context(), image, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.awaitImage(t, objects.NameOf("stuck-b"), "in use", func(image *v1alpha1.WorkerImage) bool {
		return condition(image, v1alpha1.ConditionInUse).Status == metav1.ConditionTrue
	})
	selected := metav1.ListOptions{LabelSelector: "made-for=deletecollection"}
	err := p.images.DeleteCollection(t.Context(), metav1.DeleteOptions{}, selected)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "2 deleted, 1 kept") || !strings.Contains(err.Error(), "tenant-a/idle-md1") {
		t.Errorf("got %v", err)
	}
	await.For(t, "two of three to be gone", func(ctx context.Context) error {
		list, err := p.images.List(ctx, selected)
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Name != objects.NameOf("stuck-b") {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		return nil
	})
}

func TestAWriteShowsInTheNextReads(t *testing.T) {
	p := realPlatform(t)
	const schematic = "stuck-read"
	p.declare(t, schematic)
	for range 5 {
		created := p.createImage(t, schematic)
		if got := p.image(t, schematic); got.UID != created.UID {
			t.Fatalf("uid %s is there after %s was created", got.UID, created.UID)
		}
		got := p.image(t, schematic)
		got.Labels = map[string]string{"team": "a"}
		got.ResourceVersion = "" // the import goes on meanwhile
		updated, err := p.images.Update(t.Context(), got, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := p.images.List(t.Context(), metav1.ListOptions{LabelSelector: "team=a", ResourceVersion: updated.ResourceVersion})
		if err != nil || len(list.Items) != 1 || list.Items[0].UID != created.UID {
			t.Fatalf("after the update the list has %v, %v", list.Items, err)
		}
		if err := p.images.Delete(t.Context(), created.Name, *metav1.NewPreconditionDeleteOptions(string(created.UID))); err != nil {
			t.Fatal(err)
		}
		if left, err := p.images.Get(t.Context(), created.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) &&
			(err != nil || left.Status.Phase != v1alpha1.WorkerImageTerminating) {
			t.Fatalf("after the deletion there is %v, %v", left, err)
		}
		p.awaitGone(t, created.Name)
	}
}
