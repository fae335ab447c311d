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
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

const (
	// writeTimeout is how long the cluster may take over a write. A webhook that does not answer would hold it
	// up for longer than a user waits.
	writeTimeout = 8 * time.Second
	// awaitTimeout is how long a write waits until it is published.
	awaitTimeout = 10 * time.Second
)

// Client writes objects of one kind in the goldens' namespace. It is the part of
// dynamic.ResourceInterface that is needed here.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Create(ctx context.Context, obj *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error)
	Update(ctx context.Context, obj *unstructured.Unstructured, options metav1.UpdateOptions, subresources ...string) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions, subresources ...string) error
}

// Observer tells when a write has been published.
type Observer interface {
	AwaitDataVolumes(ctx context.Context, image, resourceVersion string) error
	AwaitClaims(ctx context.Context, image, resourceVersion string) error
}

// Config is what a Backend needs. All of it is required.
type Config struct {
	DataVolumes Client
	Claims      Client
	// Namespace of the goldens.
	Namespace string
	// Plan returns the catalog entry that a golden is made from.
	Plan     catalog.Planner
	Observer Observer
}

// Backend implements memory.Backend for WorkerImages.
type Backend struct {
	Config
}

var _ memory.Backend = &Backend{}

// New returns a Backend.
func New(config Config) *Backend { return &Backend{config} }

// Create makes the golden of a catalog entry.
func (b *Backend) Create(ctx context.Context, _ string, obj runtime.Object) (memory.Visible, error) {
	image := obj.(*images.WorkerImage)
	made, err := b.create(ctx, image, nil)
	if err != nil {
		return nil, err
	}
	note(ctx, "Created the DataVolume of an image", image)
	return published, await(ctx, b.Observer.AwaitDataVolumes, image.Name, made)
}

// DryRunCreate asks the cluster whether Create would be accepted.
func (b *Backend) DryRunCreate(ctx context.Context, image *images.WorkerImage) error {
	_, err := b.create(ctx, image, []string{metav1.DryRunAll})
	return err
}

func (b *Backend) create(ctx context.Context, image *images.WorkerImage, dryRun []string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	entry, errs := b.Plan(golden.ID{SchematicID: image.Spec.SchematicID, Version: image.Spec.Version})
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(images.Kind("WorkerImage"), image.Name, errs)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(entry.DataVolume(b.Namespace))
	if err != nil {
		return nil, fmt.Errorf("encode DataVolume %s/%s: %w", b.Namespace, image.Name, err)
	}
	unstructured.RemoveNestedField(content, "status")
	dv := &unstructured.Unstructured{Object: content}
	if err := setMetadata(dv, image); err != nil {
		return nil, err
	}
	if err := b.checkVacant(ctx, image.Name); err != nil {
		return nil, err
	}
	made, err := b.DataVolumes.Create(ctx, dv, metav1.CreateOptions{DryRun: dryRun})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, apierrors.NewAlreadyExists(images.Resource("workerimages"), image.Name)
	case apierrors.IsNotFound(err):
		return nil, unavailable("there is no place for a golden: CDI is not installed, or the namespace is missing", err)
	case err != nil:
		return nil, translate(err)
	}
	return made, nil
}

// checkVacant refuses to make a golden while the claim of the one before is still there. CDI would make it,
// and report the state of that claim as its own.
func (b *Backend) checkVacant(ctx context.Context, name string) error {
	_, claim, err := b.readClaim(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return translate(err)
	}
	if !claim.Deleting && claim.Owner == "" {
		return nil // CDI adopts it or says why not
	}
	dv, err := b.DataVolumes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && dv.GetDeletionTimestamp() != nil {
		return images.NewTerminatingConflict(name)
	}
	return translate(err)
}

// Update keeps the labels, annotations and managed fields of an image with its golden.
func (b *Backend) Update(ctx context.Context, _ string, old, obj runtime.Object) (memory.Visible, error) {
	before, image := old.(*images.WorkerImage), obj.(*images.WorkerImage)
	g, written, err := b.update(ctx, before, image, nil)
	if err != nil {
		return nil, err
	}
	return published, await(ctx, g.published, image.Name, written)
}

// DryRunUpdate asks the cluster whether Update would be accepted.
func (b *Backend) DryRunUpdate(ctx context.Context, before, image *images.WorkerImage) error {
	return retryOnConflict(func() error {
		_, _, err := b.update(ctx, before, image, []string{metav1.DryRunAll})
		return err
	})
}

func (b *Backend) update(ctx context.Context, before, image *images.WorkerImage, dryRun []string) (liveGolden, *unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	g, err := b.live(ctx, before)
	if err != nil {
		return g, nil, err
	}
	if !equality.Semantic.DeepEqual(g.metadata, metadataOf(before)) {
		return g, nil, outdated(before)
	}
	if err := setMetadata(g.object, image); err != nil {
		return g, nil, err
	}
	written, err := g.client.Update(ctx, g.object, metav1.UpdateOptions{DryRun: dryRun})
	if apierrors.IsNotFound(err) {
		return g, nil, outdated(before)
	}
	return g, written, translate(err)
}

// Delete deletes the golden of an image: its DataVolume, whose claim goes with it, or the claim where only
// that is left. The DataVolume stays until the claim is gone, so that the image is there until then, and no
// other can be made in between.
func (b *Backend) Delete(ctx context.Context, _ string, old runtime.Object) (memory.Visible, error) {
	image := old.(*images.WorkerImage)
	if err := b.delete(ctx, image, nil); err != nil {
		return nil, err
	}
	note(ctx, "Deleted the golden of an image", image)
	return func(obj runtime.Object) bool {
		now, ok := obj.(*images.WorkerImage)
		return !ok || now.UID != image.UID || now.Status.Phase == images.WorkerImageTerminating
	}, nil
}

// DryRunDelete asks the cluster whether Delete would be accepted.
func (b *Backend) DryRunDelete(ctx context.Context, image *images.WorkerImage) error {
	return retryOnConflict(func() error { return b.delete(ctx, image, []string{metav1.DryRunAll}) })
}

// retryOnConflict does for a dry run what the storage does for a write: CDI changes a golden several times a
// second while it is imported.
func retryOnConflict(dryRun func() error) error {
	return retry.RetryOnConflict(retry.DefaultRetry, dryRun)
}

func (b *Backend) delete(ctx context.Context, image *images.WorkerImage, dryRun []string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	g, err := b.live(ctx, image)
	if err != nil || g.object.GetDeletionTimestamp() != nil {
		return err
	}
	err = g.client.Delete(ctx, g.object.GetName(), metav1.DeleteOptions{
		DryRun:            dryRun,
		PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
		Preconditions: &metav1.Preconditions{
			UID:             ptr.To(g.object.GetUID()),
			ResourceVersion: ptr.To(g.object.GetResourceVersion()),
		},
	})
	if apierrors.IsNotFound(err) {
		return outdated(image)
	}
	return translate(err)
}

// liveGolden is the object that a WorkerImage stands for, as it is now.
type liveGolden struct {
	client    Client
	object    *unstructured.Unstructured
	metadata  golden.Metadata
	published func(ctx context.Context, image, resourceVersion string) error
}

// live reads the golden of an image. An image that no longer stands for the golden of that name is outdated.
func (b *Backend) live(ctx context.Context, image *images.WorkerImage) (liveGolden, error) {
	read := b.liveDataVolume
	if image.Status.DataVolume == nil {
		read = b.liveClaim
	}
	g, uid, err := read(ctx, image)
	switch {
	case apierrors.IsNotFound(err):
		return g, outdated(image)
	case err != nil:
		return g, translate(err)
	case uid != image.UID:
		return g, outdated(image)
	}
	return g, nil
}

func (b *Backend) liveDataVolume(ctx context.Context, image *images.WorkerImage) (liveGolden, types.UID, error) {
	g := liveGolden{client: b.DataVolumes, published: b.Observer.AwaitDataVolumes}
	var err error
	if g.object, err = g.client.Get(ctx, image.Status.DataVolume.Name, metav1.GetOptions{}); err != nil {
		return g, "", err
	}
	dv := golden.DataVolumeFrom(g.object.Object)
	g.metadata = dv.Metadata
	return g, golden.UID(dv, nil), nil
}

// liveClaim reads a claim that is a golden as long as there is no DataVolume of its name: one would take the
// claim over.
func (b *Backend) liveClaim(ctx context.Context, image *images.WorkerImage) (liveGolden, types.UID, error) {
	g := liveGolden{client: b.Claims, published: b.Observer.AwaitClaims}
	_, err := b.DataVolumes.Get(ctx, image.Name, metav1.GetOptions{})
	if err == nil {
		return g, "", outdated(image)
	}
	if !apierrors.IsNotFound(err) {
		return g, "", err
	}
	object, claim, err := b.readClaim(ctx, image.Name)
	if err != nil {
		return g, "", err
	}
	g.object, g.metadata = object, claim.Metadata
	return g, golden.UID(nil, claim), nil
}

func (b *Backend) readClaim(ctx context.Context, name string) (*unstructured.Unstructured, *golden.Claim, error) {
	object, err := b.Claims.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	var pvc corev1.PersistentVolumeClaim
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pvc); err != nil {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("read claim %s/%s: %w", b.Namespace, name, err))
	}
	return object, golden.ClaimFrom(&pvc), nil
}

func metadataOf(image *images.WorkerImage) golden.Metadata {
	return golden.Metadata{Labels: image.Labels, Annotations: image.Annotations, ManagedFields: image.ManagedFields}
}

func setMetadata(g *unstructured.Unstructured, image *images.WorkerImage) error {
	encoded, err := metadataOf(image).Encode()
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	annotations := g.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if encoded == "" {
		delete(annotations, golden.MetadataAnnotation)
	} else {
		annotations[golden.MetadataAnnotation] = encoded
	}
	g.SetAnnotations(annotations)
	return nil
}

// published is the answer of a write that has waited itself.
func published(runtime.Object) bool { return true }

func await(ctx context.Context, shows func(ctx context.Context, image, resourceVersion string) error, image string, written *unstructured.Unstructured) error {
	limited, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	if err := shows(limited, image, written.GetResourceVersion()); err != nil {
		klog.FromContext(ctx).Error(err, "A write was accepted but is not published yet", "image", image)
		return apierrors.NewTimeoutError("the write was accepted, but it is not visible here yet", 0)
	}
	return nil
}

// note leaves a trace of who had the server write.
func note(ctx context.Context, what string, image *images.WorkerImage) {
	name := ""
	if user, ok := genericapirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	klog.FromContext(ctx).Info(what, "image", image.Name, "user", name)
}

// outdated is a conflict upon which the write is tried again with what is published by then.
func outdated(image *images.WorkerImage) error {
	return apierrors.NewConflict(images.Resource("workerimages"), image.Name, errors.New("the golden has changed in the meantime"))
}

// translate passes on what the cluster says. Only what is no fault of the user's is put into other words.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), ` is forbidden: User "`):
		return apierrors.NewInternalError(fmt.Errorf("the server's own account lacks a right: %w", err))
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return unavailable("the admission webhook of CDI cannot be reached, nothing was changed; try again", err)
	case !errors.As(err, new(apierrors.APIStatus)):
		// Where the cluster was looked for is nobody's business.
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return unavailable("the cluster cannot be reached, or does not answer; try again", err)
	}
	return err
}

func unavailable(what string, err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: %v", what, err))
}
