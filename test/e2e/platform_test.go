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
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

const (
	// patience is how long anything may take on a machine that is busy with other things.
	patience = 2 * time.Minute
	interval = 50 * time.Millisecond
)

var (
	dataVolumes         = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	pools               = schema.GroupVersionResource{Group: "apps.cozystack.io", Version: "v1alpha1", Resource: "kubernetesnodeses"}
	claims              = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	storageClasses      = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	storageProfiles     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "storageprofiles"}
	cdis                = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "cdis"}
	roleBindings        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	kinds               = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// platform is a stack, seen by its administrator.
type platform struct {
	*stack.Stack
	kubectl kubectl
	images  imagesclient.WorkerImageInterface
	dynamic dynamic.Interface
	kube    kubernetes.Interface
	http    *http.Client
}

// realPlatform has the real CDI at work on the samples.
func realPlatform(t *testing.T) *platform {
	t.Helper()
	return newPlatform(t, shared.real.get(t))
}

// quietPlatform has the kinds and nothing that acts on their objects. It has no StorageClass either.
func quietPlatform(t *testing.T) *platform {
	t.Helper()
	return newPlatform(t, shared.quiet.get(t))
}

func newPlatform(t *testing.T, s *stack.Stack) *platform {
	t.Helper()
	config := s.RESTConfig()
	images, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &platform{
		Stack:   s,
		kubectl: kubectl{path: s.Kubectl(), kubeconfig: s.Kubeconfig(), cache: filepath.Join(s.Dir, "kubectl-cache")},
		images:  images.ImagesV1alpha1().WorkerImages(),
		dynamic: dynamicClient,
		kube:    kube,
		http:    httpClient,
	}
}

// restartServer runs the server again and waits until requests are passed on to it.
func (p *platform) restartServer(t *testing.T) {
	t.Helper()
	if err := p.RestartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "the server to be available", func(ctx context.Context) error {
		a, err := p.tryToAsk(ctx, group, http.Header{})
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	})
}

// await waits until the condition holds. Errors of the condition count as not yet.
func await(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), condition); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

func poll(ctx context.Context, condition func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", err, last)
}

// awaitImage waits until a WorkerImage is as the check wants it, and returns it.
func (p *platform) awaitImage(t *testing.T, name, what string, check func(*v1alpha1.WorkerImage) bool) *v1alpha1.WorkerImage {
	t.Helper()
	var image *v1alpha1.WorkerImage
	await(t, fmt.Sprintf("%s to be %s", name, what), func(ctx context.Context) error {
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
	await(t, name+" to be gone", func(ctx context.Context) error { return p.gone(ctx, name) })
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

// create makes an object, and takes it away when the test ends.
func (p *platform) create(t *testing.T, resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := p.resource(resource, object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() { p.remove(t, resource, object.GetNamespace(), object.GetName()) })
	return created
}

// createGolden makes a golden, and takes it away when the test ends.
func (p *platform) createGolden(t *testing.T, golden *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	t.Cleanup(func() {
		if err := poll(context.WithoutCancel(t.Context()), func(ctx context.Context) error { return p.gone(ctx, golden.GetName()) }); err != nil {
			t.Errorf("wait for %s to be gone: %v", golden.GetName(), err)
		}
	})
	return p.create(t, dataVolumes, golden)
}

// remove deletes an object that may be gone already, and waits until it is. It runs in cleanups too, when the context of
// the test is done.
func (p *platform) remove(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	client := p.resource(resource, namespace)
	err := poll(context.WithoutCancel(t.Context()), func(ctx context.Context) error {
		err := client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		if err == nil {
			err = p.release(ctx, resource, namespace, name)
		}
		if err == nil {
			_, err = client.Get(ctx, name, metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is there"))
	})
	if err != nil {
		t.Errorf("delete %s %s/%s: %v", resource.Resource, namespace, name, err)
	}
}

// createMany makes objects in one namespace, and takes them away when the test ends. The test must not be a part of another.
func (p *platform) createMany(t *testing.T, resource schema.GroupVersionResource, objects []*unstructured.Unstructured) {
	t.Helper()
	mine := map[string]string{"made-for": t.Name()}
	client := p.resource(resource, objects[0].GetNamespace())
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

// release lets go of a claim that is to be deleted, where no controller does.
func (p *platform) release(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	if _, found := p.Process("kube-controller-manager"); found || resource != claims {
		return nil
	}
	_, err := p.resource(resource, namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return err
}

// patch merges a patch into an object. It runs in cleanups too.
func (p *platform) patch(t *testing.T, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
	t.Helper()
	_, err := p.resource(resource, namespace).Patch(context.WithoutCancel(t.Context()), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatalf("patch %s %s/%s: %v", resource.Resource, namespace, name, err)
	}
}

// resource is the access to a kind in a namespace, or in the cluster if that is empty.
func (p *platform) resource(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return p.dynamic.Resource(resource)
	}
	return p.dynamic.Resource(resource).Namespace(namespace)
}
