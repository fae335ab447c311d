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

package workerimage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
)

// namedUsers is how many pools an error names.
const namedUsers = 10

// Create makes the golden of a catalog entry. The name may be left out.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	out, err := r.create(ctx, obj, validate, options)
	r.observe("create", options.DryRun, err)
	return out, err
}

func (r *REST) create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	image, ok := obj.(*images.WorkerImage)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a WorkerImage: %T", obj))
	}
	// What the object says by itself counts first, and the Store says what is wrong with it.
	if len(validateNew(image)) == 0 {
		if err := r.checkAbsent(ctx, goldenName(image)); err != nil {
			return nil, err
		}
	}
	return r.store.Create(ctx, obj, r.rehearsedCreate(validate, options.DryRun), options)
}

// checkAbsent says of an image that is there already how it differs from what the catalog would make, or
// when it will be gone. It comes before the catalog is asked: that an image exists counts for more than that
// nobody declares it.
func (r *REST) checkAbsent(ctx context.Context, name string) error {
	obj, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return r.plannable()
	}
	if err != nil {
		return err
	}
	image := obj.(*images.WorkerImage)
	if image.Status.Phase == images.WorkerImageTerminating {
		return images.NewTerminatingConflict(name)
	}
	exists := apierrors.NewAlreadyExists(images.Resource("workerimages"), name)
	if c := image.Status.Catalog; c != nil && len(c.Drift) > 0 {
		exists.ErrStatus.Message += "; it differs from the catalog: " + describeDrift(c.Drift)
	}
	return exists
}

func describeDrift(drift []images.CatalogDrift) string {
	out := make([]string, 0, len(drift))
	for _, d := range drift {
		out = append(out, fmt.Sprintf("%s is %q and the catalog says %q", d.Field, d.Live, d.Catalog))
	}
	return strings.Join(out, ", ")
}

// Update changes labels and annotations. An apply may create.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	out, created, err := r.update(ctx, name, info, create, update, forceAllowCreate, options)
	verb := "update"
	if created {
		verb = "create"
	}
	r.observe(verb, options.DryRun, err)
	return out, created, err
}

func (r *REST) update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx = r.view.NewContext(ctx)
	if _, err := r.store.Get(ctx, name, &metav1.GetOptions{}); forceAllowCreate && apierrors.IsNotFound(err) {
		if err := r.plannable(); err != nil {
			return nil, false, err
		}
	}
	return r.store.Update(ctx, name, info, r.rehearsedCreate(create, options.DryRun), r.rehearsedUpdate(update, options.DryRun), forceAllowCreate, options)
}

// Delete retires a golden that nobody needs.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	out, deleted, err := r.store.Delete(ctx, name, r.guarded(validate, options), options)
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	r.observe("delete", options.DryRun, err)
	return out, deleted, err
}

func (r *REST) observe(verb string, dryRun []string, err error) {
	if !dryrun.IsDryRun(dryRun) {
		r.observer.Wrote(verb, err)
	}
}

// DeleteCollection deletes what may be deleted, and reports the rest.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *internalversion.ListOptions) (runtime.Object, error) {
	ctx = r.view.NewContext(ctx)
	obj, err := r.store.List(ctx, listOptions)
	if err != nil {
		return nil, err
	}
	list := obj.(*images.WorkerImageList)
	var kept []error
	deleted := list.Items[:0:0]
	for _, image := range list.Items {
		// Each deletion changes its options.
		_, _, err := r.Delete(ctx, image.Name, validate, options.DeepCopy())
		switch {
		case err == nil:
			deleted = append(deleted, image)
		case !apierrors.IsNotFound(err):
			kept = append(kept, err)
		}
	}
	if len(kept) > 0 {
		return nil, apierrors.NewConflict(images.Resource("workerimages"), "",
			fmt.Errorf("%d deleted, %d kept: %w", len(deleted), len(kept), utilerrors.NewAggregate(kept)))
	}
	list.Items = deleted
	return list, nil
}

func (r *REST) rehearsedCreate(validate rest.ValidateObjectFunc, dryRun []string) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := call(ctx, validate, obj); err != nil || !dryrun.IsDryRun(dryRun) {
			return err
		}
		return r.rehearser.DryRunCreate(ctx, obj.(*images.WorkerImage))
	}
}

func (r *REST) rehearsedUpdate(validate rest.ValidateObjectUpdateFunc, dryRun []string) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj, old); err != nil {
				return err
			}
		}
		if !dryrun.IsDryRun(dryRun) {
			return nil
		}
		return r.rehearser.DryRunUpdate(ctx, old.(*images.WorkerImage), obj.(*images.WorkerImage))
	}
}

// guarded refuses the deletion of an image that is in use. It is asked again whenever the image changes
// before its golden is deleted.
func (r *REST) guarded(validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) view.ValidateDeleteFunc {
	return func(ctx context.Context, obj, shown runtime.Object) error {
		image := obj.(*images.WorkerImage)
		if err := call(ctx, validate, shown); err != nil {
			return err
		}
		rehearsal := options != nil && dryrun.IsDryRun(options.DryRun)
		if err := guard(image, shown.(*images.WorkerImage)); err != nil {
			if !rehearsal {
				r.noteRefusal(ctx, image)
			}
			return err
		}
		if !rehearsal {
			return nil
		}
		return r.rehearser.DryRunDelete(ctx, image)
	}
}

// guard answers what the condition Deletable says, and names the users that are shown to the caller.
func guard(image, shown *images.WorkerImage) error {
	deletable := meta.FindStatusCondition(image.Status.Conditions, images.ConditionDeletable)
	if deletable != nil && deletable.Status == metav1.ConditionTrue {
		return nil
	}
	why := "whether it is in use is not known"
	if deletable != nil {
		why = deletable.Message
		if deletable.Reason == projection.ReasonInUse {
			all, visible := users(image.Status.Pools), users(shown.Status.Pools)
			why += describeUsers(visible, len(all) > len(visible)) + wayOut(image)
		}
	}
	return apierrors.NewConflict(images.Resource("workerimages"), image.Name, errors.New(why))
}

// noteRefusal leaves a trace of who would have deleted an image. It names none of those that need it.
func (r *REST) noteRefusal(ctx context.Context, image *images.WorkerImage) {
	reason, name := whyNotDeletable(image), ""
	if user, ok := genericapirequest.UserFrom(ctx); ok {
		name = user.GetName()
	}
	klog.FromContext(ctx).Info("Refused to delete an image", "image", image.Name, "reason", reason, "user", name)
	r.observer.RefusedDelete(reason)
}

// whyNotDeletable is the reason of the condition Deletable; empty where there is no such condition.
func whyNotDeletable(image *images.WorkerImage) string {
	if c := meta.FindStatusCondition(image.Status.Conditions, images.ConditionDeletable); c != nil {
		return c.Reason
	}
	return ""
}

// wayOut says what makes an image that is in use deletable.
func wayOut(image *images.WorkerImage) string {
	used := meta.FindStatusCondition(image.Status.Conditions, images.ConditionInUse)
	if used != nil && used.Reason == projection.ReasonCloneInFlight {
		return " Wait until that is done."
	}
	return " Move the pools to another image first."
}

// users are the names of the pools that an image cannot be taken from.
func users(pools []images.PoolStatus) []string {
	var names []string
	for _, p := range pools {
		if p.Reason != projection.ReasonNotSelected || p.Disks.Cloning > 0 {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names
}

// describeUsers says of users that are hidden that there are some, and not how many.
func describeUsers(names []string, hidden bool) string {
	if more := len(names) - namedUsers; more > 0 {
		names = append(names[:namedUsers], fmt.Sprintf("and %d more", more))
	}
	switch {
	case hidden && len(names) > 0:
		names = append(names, "and pools that you may not see")
	case hidden:
		names = append(names, "pools that you may not see")
	case len(names) == 0:
		return ""
	}
	return " Used by " + strings.Join(names, ", ") + "."
}

func call(ctx context.Context, validate rest.ValidateObjectFunc, obj runtime.Object) error {
	if validate == nil {
		return nil
	}
	return validate(ctx, obj)
}

// goldenName is the name that the identity of an image gives it.
func goldenName(image *images.WorkerImage) string {
	return golden.ID{SchematicID: image.Spec.SchematicID, Version: image.Spec.Version}.Name()
}
