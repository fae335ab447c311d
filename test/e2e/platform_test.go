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
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// platform is a stack, seen by its administrator.
type platform struct {
	*stack.Stack
	kubectl kubectl
	images  imagesclient.WorkerImageInterface
	kube    kubernetes.Interface
	wire    *wire.Client
}

// realPlatform has the real CDI at work on the samples.
func realPlatform(t *testing.T) *platform {
	t.Helper()
	return newPlatform(t, shared.real.Get(t))
}

// quietPlatform has the kinds and nothing that acts on their objects. It has no StorageClass either.
func quietPlatform(t *testing.T) *platform {
	t.Helper()
	return newPlatform(t, shared.quiet.Get(t))
}

func newPlatform(t *testing.T, s *stack.Stack) *platform {
	t.Helper()
	config := s.RESTConfig()
	images, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := wire.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return &platform{
		Stack:   s,
		kubectl: kubectl{path: s.Kubectl(), kubeconfig: s.Kubeconfig(), cache: filepath.Join(s.Dir, "kubectl-cache")},
		images:  images.ImagesV1alpha1().WorkerImages(),
		kube:    kube,
		wire:    client,
	}
}

// restartServer runs the server again and waits until requests are passed on to it.
func (p *platform) restartServer(t *testing.T) {
	t.Helper()
	if err := p.RestartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.For(t, "the server to be available", func(ctx context.Context) error {
		a, err := p.wire.Try(ctx, http.MethodGet, group, http.Header{}, "")
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return err
	})
}

// awaitImage waits until a WorkerImage is as the check wants it, and returns it.
func (p *platform) awaitImage(t *testing.T, name, what string, check func(*v1alpha1.WorkerImage) bool) *v1alpha1.WorkerImage {
	t.Helper()
	var image *v1alpha1.WorkerImage
	await.For(t, fmt.Sprintf("%s to be %s", name, what), func(ctx context.Context) error {
		var err error
		if image, err = p.images.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !check(image) {
			return fmt.Errorf("its status is %+v", image.Status)
		}
		return nil
	})
	return image
}

// awaitReady waits until an image can be cloned.
func (p *platform) awaitReady(t *testing.T, name string) *v1alpha1.WorkerImage {
	t.Helper()
	return p.awaitImage(t, name, "Ready", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.Phase == v1alpha1.WorkerImageReady
	})
}

// awaitGone waits until there is no WorkerImage of that name.
func (p *platform) awaitGone(t *testing.T, name string) {
	t.Helper()
	await.For(t, name+" to be gone", func(ctx context.Context) error { return p.gone(ctx, name) })
}

func (p *platform) gone(ctx context.Context, name string) error {
	_, err := p.images.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.New("it is there")
}

// condition returns a condition of an image; an empty one if it has none of that type.
func condition(image *v1alpha1.WorkerImage, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(image.Status.Conditions, kind), metav1.Condition{})
}

// exists is true for every image.
func exists(*v1alpha1.WorkerImage) bool { return true }

// poolOf returns what an image says of a pool; nothing if it does not know the pool.
func poolOf(image *v1alpha1.WorkerImage, namespace, name string) v1alpha1.PoolStatus {
	found := v1alpha1.PoolStatus{}
	for _, pool := range image.Status.Pools {
		if pool.Namespace == namespace && pool.Name == name {
			found = pool
		}
	}
	if found.StorageClass == nil {
		found.StorageClass = &v1alpha1.PoolStorageClass{}
	}
	return found
}

// createGolden makes a golden, and takes it away when the test ends.
func (p *platform) createGolden(t *testing.T, golden *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	t.Cleanup(func() {
		if err := await.Poll(context.WithoutCancel(t.Context()), func(ctx context.Context) error { return p.gone(ctx, golden.GetName()) }); err != nil {
			t.Errorf("wait for %s to be gone: %v", golden.GetName(), err)
		}
	})
	return p.Create(t, objects.DataVolumes, golden)
}

// createMany makes objects in one namespace, and takes them away when the test ends. The test must not be a part of another.
func (p *platform) createMany(t *testing.T, resource schema.GroupVersionResource, objects []*unstructured.Unstructured) {
	t.Helper()
	mine := map[string]string{"made-for": t.Name()}
	client := p.Resource(resource, objects[0].GetNamespace())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: labels.FormatLabels(mine)})
		if err != nil {
			t.Errorf("delete the %s: %v", resource.Resource, err)
		}
	})
	for _, object := range objects {
		object.SetLabels(mine)
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}
