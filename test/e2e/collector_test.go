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
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

func TestTheGarbageCollectorSyncs(t *testing.T) {
	p := realPlatform(t)
	await.For(t, "the garbage collector to have synced", func(context.Context) error {
		log, err := os.ReadFile(filepath.Join(p.Dir, "kube-controller-manager.log"))
		if err == nil && !strings.Contains(string(log), "Garbage collector: all resource monitors have synced") {
			err = errors.New("its log does not say so")
		}
		return err
	})
}

// The collector takes an object whose owner has another uid than it should for one whose owner is gone. It gets to work on a
// kind half a minute after it has appeared.
func TestWhatAnImageOwnsIsCollectedWithIt(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	const schematic = "owner"
	await.For(t, "the garbage collector to watch images", func(context.Context) error {
		if len(p.audit(t).by(controllerManagerUser).of(v1alpha1.GroupName)) == 0 {
			return errors.New("it has not asked")
		}
		return nil
	})
	golden := p.createGolden(t, objects.NewGolden(schematic))
	image := p.awaitReady(t, objects.NameOf(schematic))
	p.createOwned(t, "owned-by-an-image", image.Name, image.UID)
	p.createOwned(t, "owned-by-nobody", image.Name, golden.GetUID())
	p.awaitCollected(t, "owned-by-nobody")
	if _, err := p.owned().Get(t.Context(), "owned-by-an-image", metav1.GetOptions{}); err != nil {
		t.Errorf("what a living image owns is gone: %v", err)
	}
	p.Remove(t, objects.DataVolumes, objects.Goldens, image.Name)
	p.awaitCollected(t, "owned-by-an-image")
	for _, event := range p.audit(t).of(v1alpha1.GroupName) {
		isController := event.User.Username == controllerManagerUser || strings.HasPrefix(event.User.Username, controllerUsers)
		if isController && !slices.Contains([]string{"get", "list", "watch"}, event.Verb) {
			t.Errorf("%s wants to %s %s", event.User.Username, event.Verb, event.URI)
		}
	}
}

// owned is where the tests make what images own.
func (p *platform) owned() typedcorev1.ConfigMapInterface {
	return p.kube.CoreV1().ConfigMaps("tenant-a")
}

func (p *platform) createOwned(t *testing.T, name, image string, uid types.UID) {
	t.Helper()
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkerImage", Name: image, UID: uid,
	}}}}
	if _, err := p.owned().Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := p.owned().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func (p *platform) awaitCollected(t *testing.T, name string) {
	t.Helper()
	await.For(t, name+" to be collected", func(ctx context.Context) error {
		_, err := p.owned().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is there"))
	})
}
