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

package stack

import (
	"cmp"
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// Resource is the administrator's access to a kind in a namespace, or in the cluster if that is empty.
func (s *Stack) Resource(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.dynamic.Resource(resource)
	}
	return s.dynamic.Resource(resource).Namespace(namespace)
}

// Create makes an object, and takes it away when the test ends.
func (s *Stack) Create(t *testing.T, resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := s.Resource(resource, object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() { s.Remove(t, resource, object.GetNamespace(), object.GetName()) })
	return created
}

// Remove deletes an object that may be gone already, and waits until it is. It runs in cleanups too, when the context of
// the test is done.
func (s *Stack) Remove(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	client := s.Resource(resource, namespace)
	err := await.Poll(context.WithoutCancel(t.Context()), func(ctx context.Context) error {
		err := client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		if err == nil {
			err = s.release(ctx, resource, namespace, name)
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

// release lets go of a claim that is to be deleted, where no controller does.
func (s *Stack) release(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	if _, found := s.Process("kube-controller-manager"); found || resource != objects.Claims {
		return nil
	}
	_, err := s.Resource(resource, namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return err
}

// Patch merges a patch into an object. It runs in cleanups too.
func (s *Stack) Patch(t *testing.T, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
	t.Helper()
	_, err := s.Resource(resource, namespace).Patch(context.WithoutCancel(t.Context()), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatalf("patch %s %s/%s: %v", resource.Resource, namespace, name, err)
	}
}
