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

package backend

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

const (
	goldens   = "cozy-public"
	schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
	release   = "v1.13.6"
	name      = "talos-worker-" + schematic + "-" + release
)

// fixture is a Backend on a cluster in memory.
type fixture struct {
	*Backend
	dataVolumes *cluster
	claims      *cluster
	observer    *observer
}

func newFixture() *fixture {
	f := &fixture{
		dataVolumes: newCluster(schema.GroupResource{Group: "cdi.kubevirt.io", Resource: "datavolumes"}),
		claims:      newCluster(schema.GroupResource{Resource: "persistentvolumeclaims"}),
		observer:    &observer{},
	}
	f.Backend = New(Config{
		DataVolumes: f.dataVolumes,
		Claims:      f.claims,
		Namespace:   goldens,
		Plan:        plan,
		Observer:    f.observer,
	})
	return f
}

// plan declares one image.
func plan(id golden.ID) (catalog.Entry, field.ErrorList) {
	if id != (golden.ID{SchematicID: schematic, Version: release}) {
		return catalog.Entry{}, field.ErrorList{field.Invalid(field.NewPath("spec"), id.Name(), "the catalog does not declare it")}
	}
	return catalog.Entry{ID: id, ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi", StorageClass: "replicated"}, nil
}

// image is the declared WorkerImage, as a user creates it.
func image() *images.WorkerImage {
	return &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       images.WorkerImageSpec{SchematicID: schematic, Version: release},
	}
}

// golden puts the golden of the declared image into the cluster, and returns the image as it is published.
func (f *fixture) golden(t *testing.T) *images.WorkerImage {
	t.Helper()
	if _, err := f.Create(t.Context(), "", image()); err != nil {
		t.Fatal(err)
	}
	dv := golden.DataVolumeFrom(f.dataVolumes.objects[name].Object)
	published := image()
	published.UID = golden.UID(dv, nil)
	published.Status.DataVolume = &images.DataVolumeStatus{Namespace: goldens, Name: name}
	f.dataVolumes.writes, f.observer.awaited = nil, nil
	return published
}

// bareClaim puts a claim without a DataVolume into the cluster, and returns its image as it is published.
func (f *fixture) bareClaim() *images.WorkerImage {
	const dataVolume = "uid-of-its-datavolume"
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "PersistentVolumeClaim",
		"metadata": map[string]any{
			"name":        name,
			"namespace":   goldens,
			"annotations": map[string]any{"cdi.kubevirt.io/createdForDataVolume": dataVolume},
		},
		"spec":   map[string]any{"storageClassName": "replicated"},
		"status": map[string]any{"phase": "Bound"},
	}}
	f.claims.put(claim)
	published := image()
	published.UID = golden.UID(&golden.DataVolume{UID: dataVolume}, nil)
	return published
}

// cluster is an API server for one kind in the namespace of the goldens. It is stricter than a real one: a
// write must say which state it is made for.
type cluster struct {
	resource schema.GroupResource
	objects  map[string]*unstructured.Unstructured
	version  int
	writes   []write
	// meanwhile happens between what a write is made for and the write.
	meanwhile func()
	// refusal is the answer to every write, and unreadable the one to every read.
	refusal, unreadable error
	// hangs keeps every write waiting until its context is done.
	hangs bool
}

// write is one that has been carried out, or rehearsed.
type write struct {
	verb   string
	object *unstructured.Unstructured
	dryRun bool
}

func newCluster(resource schema.GroupResource) *cluster {
	return &cluster{resource: resource, objects: map[string]*unstructured.Unstructured{}}
}

var _ Client = &cluster{}

// put makes o the object of that name, and a new one if it has no uid.
func (c *cluster) put(o *unstructured.Unstructured) *unstructured.Unstructured {
	c.version++
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + strconv.Itoa(c.version)))
	}
	o.SetResourceVersion(strconv.Itoa(c.version))
	c.objects[o.GetName()] = o
	return o.DeepCopy()
}

// replace makes another object of the name of one that is there.
func (c *cluster) replace(name string) {
	another := c.objects[name].DeepCopy()
	another.SetUID("")
	another.SetAnnotations(nil)
	c.put(another)
}

func (c *cluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if c.unreadable != nil {
		return nil, c.unreadable
	}
	o, found := c.objects[name]
	if !found {
		return nil, apierrors.NewNotFound(c.resource, name)
	}
	return o.DeepCopy(), nil
}

func (c *cluster) Create(ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	if err := c.answer(ctx); err != nil {
		return nil, err
	}
	if o.GetNamespace() != goldens {
		return nil, apierrors.NewBadRequest("the namespace of the object does not match that of the request")
	}
	if c.objects[o.GetName()] != nil {
		return nil, apierrors.NewAlreadyExists(c.resource, o.GetName())
	}
	return c.carryOut("create", o, options.DryRun), nil
}

func (c *cluster) Update(ctx context.Context, o *unstructured.Unstructured, options metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
	if err := c.answer(ctx); err != nil {
		return nil, err
	}
	if err := c.check(o.GetName(), o.GetUID(), o.GetResourceVersion()); err != nil {
		return nil, err
	}
	return c.carryOut("update", o, options.DryRun), nil
}

func (c *cluster) Delete(ctx context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	if err := c.answer(ctx); err != nil {
		return err
	}
	p := options.Preconditions
	if p == nil || p.UID == nil || p.ResourceVersion == nil {
		return apierrors.NewBadRequest("a deletion must name the uid and the version")
	}
	if policy := options.PropagationPolicy; policy == nil || *policy != metav1.DeletePropagationForeground {
		return apierrors.NewBadRequest("a deletion must wait for the claim")
	}
	if err := c.check(name, *p.UID, *p.ResourceVersion); err != nil {
		return err
	}
	dryRun := len(options.DryRun) > 0
	c.writes = append(c.writes, write{"delete", c.objects[name], dryRun})
	if !dryRun {
		delete(c.objects, name)
	}
	return nil
}

// answer returns why a write is not carried out whatever it is.
func (c *cluster) answer(ctx context.Context) error {
	if c.meanwhile != nil {
		c.meanwhile()
	}
	if c.hangs {
		<-ctx.Done()
		return &url.Error{Op: "Post", URL: "https://10.96.0.1/apis", Err: ctx.Err()}
	}
	return c.refusal
}

func (c *cluster) check(name string, uid types.UID, version string) error {
	o, found := c.objects[name]
	switch {
	case !found:
		return apierrors.NewNotFound(c.resource, name)
	case o.GetUID() != uid || o.GetResourceVersion() != version:
		return apierrors.NewConflict(c.resource, name, errors.New("it has been changed"))
	}
	return nil
}

func (c *cluster) carryOut(verb string, o *unstructured.Unstructured, dryRun []string) *unstructured.Unstructured {
	c.writes = append(c.writes, write{verb, o.DeepCopy(), len(dryRun) > 0})
	if len(dryRun) > 0 {
		return o
	}
	return c.put(o.DeepCopy())
}

// observer notes what is waited for.
type observer struct {
	awaited []string
	// answer takes the place of a publication.
	answer func(ctx context.Context) error
}

func (o *observer) AwaitDataVolumes(ctx context.Context, image, resourceVersion string) error {
	return o.await(ctx, "datavolumes "+image+" "+resourceVersion)
}

func (o *observer) AwaitClaims(ctx context.Context, image, resourceVersion string) error {
	return o.await(ctx, "claims "+image+" "+resourceVersion)
}

func (o *observer) await(ctx context.Context, what string) error {
	o.awaited = append(o.awaited, what)
	if o.answer != nil {
		return o.answer(ctx)
	}
	return nil
}
