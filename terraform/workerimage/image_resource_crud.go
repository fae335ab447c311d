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
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/images"
)

// defaultWriteTimeout is how long a deletion is waited for, one's own and one that is in the way.
const defaultWriteTimeout = 10 * time.Minute

func (r *imageResource) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var plan imageResourceModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	timeout, faults := plan.Timeouts.Create(ctx, defaultWriteTimeout)
	response.Diagnostics.Append(faults...)
	image := plan.image(ctx, &response.Diagnostics)
	if response.Diagnostics.HasError() {
		return
	}
	client := r.client(&response.Diagnostics)
	if client == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	created, err := client.Create(bounded, image)
	if err != nil {
		response.Diagnostics.AddError(explainCreate(client, image.Name, err))
		return
	}
	response.Diagnostics.Append(plan.fill(ctx, created)...)
	response.Diagnostics.Append(response.State.Set(ctx, &plan)...)
}

// image is what the plan asks for.
func (m *imageResourceModel) image(ctx context.Context, diagnostics *diag.Diagnostics) *v1alpha1.WorkerImage {
	return &v1alpha1.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{
			Name:        imageName(m.SchematicID.ValueString(), m.Version.ValueString()),
			Labels:      texts(ctx, m.Labels, diagnostics),
			Annotations: texts(ctx, m.Annotations, diagnostics),
		},
		Spec: v1alpha1.WorkerImageSpec{SchematicID: m.SchematicID.ValueString(), Version: m.Version.ValueString()},
	}
}

func explainCreate(client *images.Client, name string, err error) (summary, detail string) {
	switch {
	case apierrors.IsAlreadyExists(err):
		return "The worker image exists already", err.Error() + ".\n\nImport it to manage it here: tofu import ADDRESS " + name +
			". If nothing here needs to manage it, read it with the data source worker_image."
	case apierrors.IsInvalid(err):
		return "The worker image cannot be made", err.Error() + "."
	case apierrors.IsConflict(err):
		return "The worker image of that name is still being deleted", err.Error() + "."
	}
	return client.Explain("create worker image "+name, err)
}

// Read takes an image that is being deleted for gone: the plan then makes it again, and the creation waits its turn.
func (r *imageResource) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var state imageResourceModel
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	client := r.client(&response.Diagnostics)
	if response.Diagnostics.HasError() {
		return
	}
	name := state.Name.ValueString()
	image, err := client.Get(ctx, name)
	switch {
	case images.NotFound(err), err == nil && image.Status.Phase == v1alpha1.WorkerImageTerminating:
		response.State.RemoveResource(ctx)
		return
	case err != nil:
		response.Diagnostics.AddError(client.Explain("read worker image "+name, err))
		return
	}
	response.Diagnostics.Append(state.fill(ctx, image)...)
	response.Diagnostics.Append(response.State.Set(ctx, &state)...)
}

// Update changes labels and annotations. The rest of what can be updated is kept here only.
func (r *imageResource) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var state, plan imageResourceModel
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	response.Diagnostics.Append(request.Plan.Get(ctx, &plan)...)
	patch := metadataPatch(ctx, state, plan, &response.Diagnostics)
	if response.Diagnostics.HasError() {
		return
	}
	client := r.client(&response.Diagnostics)
	if client == nil {
		return
	}
	image, err := client.Patch(ctx, state.Name.ValueString(), patch)
	if err != nil {
		response.Diagnostics.AddError(client.Explain("label worker image "+state.Name.ValueString(), err))
		return
	}
	response.Diagnostics.Append(plan.fill(ctx, image)...)
	response.Diagnostics.Append(response.State.Set(ctx, &plan)...)
}

func (r *imageResource) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var state imageResourceModel
	response.Diagnostics.Append(request.State.Get(ctx, &state)...)
	timeout, faults := state.Timeouts.Delete(ctx, defaultWriteTimeout)
	response.Diagnostics.Append(faults...)
	if response.Diagnostics.HasError() {
		return
	}
	name, uid := state.Name.ValueString(), apitypes.UID(state.UID.ValueString())
	if state.RetainOnDelete.ValueBool() {
		tflog.Info(ctx, "the worker image is left in the cluster", map[string]any{"worker_image": name})
		return
	}
	client := r.client(&response.Diagnostics)
	if client == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := deleteAndWait(bounded, client, name, uid); err != nil {
		response.Diagnostics.AddError(explainDelete(client, name, err))
	}
}

func deleteAndWait(ctx context.Context, client *images.Client, name string, uid apitypes.UID) error {
	err := client.Delete(ctx, name, uid)
	if images.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return client.WaitGone(ctx, name, uid)
}

func explainDelete(client *images.Client, name string, err error) (summary, detail string) {
	var late *images.TimeoutError
	switch {
	case apierrors.IsConflict(err):
		return "The worker image is not deleted", err.Error() +
			"\n\nTo give it up here and leave it in the cluster, set retain_on_delete = true, apply, and destroy again."
	case errors.As(err, &late):
		return "The worker image is not gone in time", err.Error() + "."
	}
	return client.Explain("delete worker image "+name, err)
}
