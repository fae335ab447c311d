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

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Client writes objects of one kind and namespace. What it writes stays in memory, and counts for more than
// what a file says until the process ends.
type Client struct {
	source    *source
	kind      schema.GroupVersionKind
	resource  schema.GroupResource
	namespace string
	// made completes an object that is created.
	made func(*unstructured.Unstructured)
	// gone follows a deletion.
	gone func(types.UID)
}

// DataVolumes returns a client of the DataVolumes in a namespace. CDI is not at work in a snapshot: a
// DataVolume that is created stays as it is and says so, and the claim of one that is deleted goes with it.
func (s *Snapshot) DataVolumes(namespace string) *Client {
	return &Client{
		source:    s.dataVolumes,
		kind:      dataVolumeKind,
		resource:  schema.GroupResource{Group: dataVolumeKind.Group, Resource: "datavolumes"},
		namespace: namespace,
		made:      withoutCDI,
		gone:      s.claims.removeOwned,
	}
}

// Claims returns a client of the claims in a namespace.
func (s *Snapshot) Claims(namespace string) *Client {
	return &Client{
		source:    s.claims,
		kind:      claimKind,
		resource:  schema.GroupResource{Resource: "persistentvolumeclaims"},
		namespace: namespace,
		made:      func(*unstructured.Unstructured) {},
		gone:      func(types.UID) {},
	}
}

func withoutCDI(dv *unstructured.Unstructured) {
	dv.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Running", "status": "False", "reason": "Snapshot",
		"message": "This is a snapshot in memory, in which nothing is imported.",
	}}}
}

// Get returns an object.
func (c *Client) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	o, err := c.find(name)
	if err != nil {
		return nil, err
	}
	return c.untyped(o)
}

// Create adds an object.
func (c *Client) Create(_ context.Context, obj *unstructured.Unstructured, options metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	if _, err := c.find(obj.GetName()); err == nil {
		return nil, apierrors.NewAlreadyExists(c.resource, obj.GetName())
	}
	obj = obj.DeepCopy()
	obj.SetNamespace(c.namespace)
	obj.SetUID(types.UID(uuid.NewString()))
	obj.SetCreationTimestamp(metav1.Now())
	obj.SetGeneration(1)
	c.made(obj)
	return c.put(obj, options.DryRun)
}

// Update replaces an object of the same version.
func (c *Client) Update(_ context.Context, obj *unstructured.Unstructured, options metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	old, err := c.find(obj.GetName())
	if err != nil {
		return nil, err
	}
	if obj.GetUID() != old.GetUID() || obj.GetResourceVersion() != old.GetResourceVersion() {
		return nil, c.changed(obj.GetName())
	}
	return c.put(obj.DeepCopy(), options.DryRun)
}

// Delete removes an object that meets the preconditions.
func (c *Client) Delete(_ context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	uid, err := c.delete(name, options)
	if err == nil && !isDryRun(options.DryRun) {
		c.gone(uid)
	}
	return err
}

func (c *Client) delete(name string, options metav1.DeleteOptions) (types.UID, error) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	o, err := c.find(name)
	if err != nil {
		return "", err
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != o.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
			return "", c.changed(name)
		}
	}
	if !isDryRun(options.DryRun) {
		c.source.written.Insert(c.key(name))
		c.source.remove(c.key(name))
	}
	return o.GetUID(), nil
}

func (c *Client) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: name}
}

func (c *Client) find(name string) (object, error) {
	o, ok := c.source.objects[c.key(name)]
	if !ok {
		return nil, apierrors.NewNotFound(c.resource, name)
	}
	return o, nil
}

func (c *Client) put(obj *unstructured.Unstructured, dryRun []string) (*unstructured.Unstructured, error) {
	o, err := typed(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if isDryRun(dryRun) {
		return obj, nil
	}
	key := c.key(obj.GetName())
	c.source.written.Insert(key)
	c.source.put(key, o)
	return c.untyped(c.source.objects[key])
}

// untyped returns a copy of an object, so that the one in the source stays as it is.
func (c *Client) untyped(o object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", c.kind.Kind, c.namespace, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(c.kind)
	return u, nil
}

func (c *Client) changed(name string) error {
	return apierrors.NewConflict(c.resource, name, errors.New("it has been changed"))
}

func isDryRun(dryRun []string) bool { return slices.Contains(dryRun, metav1.DryRunAll) }

// removeOwned removes what an object controlled that is gone.
func (s *source) removeOwned(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, o := range s.objects {
		if controller := metav1.GetControllerOfNoCopy(o); controller != nil && controller.UID == owner {
			s.written.Insert(name)
			s.remove(name)
		}
	}
}
