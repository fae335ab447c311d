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
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/images"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/selection"
)

const (
	// waitForReady is the only state that can be waited for.
	waitForReady = "Ready"
	// defaultReadTimeout is how long an image is waited for: more than an import takes over a slow line.
	defaultReadTimeout = 20 * time.Minute
	// nearestNames is how many names an error suggests.
	nearestNames = 3
)

// imageDataSource is the data source worker_image.
type imageDataSource struct {
	access
}

var (
	_ datasource.DataSourceWithConfigure      = &imageDataSource{}
	_ datasource.DataSourceWithValidateConfig = &imageDataSource{}
)

// imageDataSourceModel is imageModel with the arguments of the data source.
type imageDataSourceModel struct {
	Name              types.String      `tfsdk:"name"`
	SchematicID       types.String      `tfsdk:"schematic_id"`
	Version           types.String      `tfsdk:"version"`
	VersionConstraint types.String      `tfsdk:"version_constraint"`
	StorageClass      types.String      `tfsdk:"storage_class"`
	ReadyOnly         types.Bool        `tfsdk:"ready_only"`
	MostRecent        types.Bool        `tfsdk:"most_recent"`
	WaitFor           types.String      `tfsdk:"wait_for"`
	Timeouts          timeouts.Value    `tfsdk:"timeouts"`
	Labels            map[string]string `tfsdk:"labels"`
	Annotations       map[string]string `tfsdk:"annotations"`
	UID               types.String      `tfsdk:"uid"`
	CreationTimestamp types.String      `tfsdk:"creation_timestamp"`
	Status            types.Object      `tfsdk:"status"`
}

func (d *imageDataSource) Metadata(_ context.Context, request datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_worker_image"
}

func (d *imageDataSource) Schema(ctx context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	filters := []path.Expression{
		path.MatchRoot("schematic_id"), path.MatchRoot("version"), path.MatchRoot("version_constraint"), path.MatchRoot("storage_class"),
		path.MatchRoot("ready_only"), path.MatchRoot("most_recent"),
	}
	attributes := dataSourceAttributes(map[string]schema.Attribute{}, imageAttributes())
	attributes["name"] = schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Name of the image, `talos-worker-<schematic_id>-<version>`. Excludes all other filters.",
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1), stringvalidator.ConflictsWith(filters...)},
	}
	attributes["schematic_id"] = schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Id of the Image Factory schematic, or the name a mirror gives it.",
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
	}
	attributes["version"] = schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The full Talos release, such as `v1.13.6`. Excludes `version_constraint`.",
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1), stringvalidator.ConflictsWith(path.MatchRoot("version_constraint"))},
	}
	attributes["version_constraint"] = constraintAttribute()
	attributes["storage_class"] = filterAttribute("The StorageClass in effect, `status.storage_class.effective`.")
	attributes["ready_only"] = schema.BoolAttribute{
		Optional:            true,
		MarkdownDescription: "Takes only an image that is ready now. Excludes `wait_for`, which waits for one that is not.",
		Validators:          []validator.Bool{boolvalidator.ConflictsWith(path.MatchRoot("wait_for"))},
	}
	attributes["most_recent"] = schema.BoolAttribute{
		Optional:            true,
		MarkdownDescription: "Takes the newest by semantic version where several images match.",
	}
	attributes["wait_for"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "`Ready` waits until the image can be cloned, for as long as `timeouts.read` (20 minutes by default). " +
			"An image that has failed, or that stands still until a person acts, is an error at once. The log at level INFO shows the progress.",
		Validators: []validator.String{stringvalidator.OneOf(waitForReady)},
	}
	attributes["timeouts"] = timeouts.AttributesWithOpts(ctx, timeouts.Opts{ReadDescription: "How long `wait_for` waits, such as `30m`."})
	response.Schema = schema.Schema{
		MarkdownDescription: "Picks one worker image: by `name`, by `schematic_id` and `version`, or by a filter. " +
			"No match, or more than one, is an error that lists the candidates.",
		Attributes: attributes,
	}
}

func (d *imageDataSource) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.data = request.ProviderData
}

// ValidateConfig refuses a timeout without anything to wait for.
func (d *imageDataSource) ValidateConfig(ctx context.Context, request datasource.ValidateConfigRequest, response *datasource.ValidateConfigResponse) {
	var model imageDataSourceModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	if !model.Timeouts.IsNull() && model.WaitFor.IsNull() {
		response.Diagnostics.AddAttributeError(path.Root("timeouts"), "Nothing to wait for",
			"A timeout bounds what wait_for waits. Set wait_for = \"Ready\", or leave timeouts out.")
	}
}

func (d *imageDataSource) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	var model imageDataSourceModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	client := d.client(&response.Diagnostics)
	if client == nil {
		return
	}
	image := d.find(ctx, client, model, &response.Diagnostics)
	if image != nil && model.WaitFor.ValueString() == waitForReady {
		image = awaitReady(ctx, client, image.Name, model.Timeouts, &response.Diagnostics)
	}
	if image == nil {
		return
	}
	response.Diagnostics.Append(model.fill(ctx, image)...)
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
}

// find returns nil where it adds an error.
func (d *imageDataSource) find(ctx context.Context, client *images.Client, model imageDataSourceModel, diagnostics *diag.Diagnostics) *v1alpha1.WorkerImage {
	if !model.Name.IsNull() {
		return findByName(ctx, client, model.Name.ValueString(), diagnostics)
	}
	query, err := newQuery(model.SchematicID, model.Version, model.VersionConstraint, model.StorageClass, model.ReadyOnly, model.MostRecent)
	if err != nil {
		diagnostics.AddAttributeError(path.Root("version_constraint"), "Not a version constraint", err.Error())
		return nil
	}
	all, err := client.List(ctx)
	if err != nil {
		diagnostics.AddError(client.Explain("list the worker images", err))
		return nil
	}
	image, err := query.One(all)
	var none *selection.NoMatchError
	switch {
	case errors.As(err, &none):
		diagnostics.AddError("No worker image matches", err.Error()+adviceOn(none))
	case err != nil:
		diagnostics.AddError("More than one worker image matches", err.Error())
	}
	return image
}

// adviceOn says what else can be done where nothing matches.
func adviceOn(none *selection.NoMatchError) string {
	if none.Query.ReadyOnly && len(none.NotReady) > 0 {
		return "\n\nwait_for = \"Ready\" in the place of ready_only waits for it."
	}
	return "\n\nThe resource worker_image makes an image that the catalog declares."
}

func findByName(ctx context.Context, client *images.Client, name string, diagnostics *diag.Diagnostics) *v1alpha1.WorkerImage {
	image, err := client.Get(ctx, name)
	switch {
	case images.NotFound(err):
		diagnostics.AddAttributeError(path.Root("name"), "There is no such worker image", explainMissing(ctx, client, name))
		return nil
	case err != nil:
		diagnostics.AddError(client.Explain("read worker image "+name, err))
		return nil
	}
	return image
}

// explainMissing suggests the names that come closest, if they can be read.
func explainMissing(ctx context.Context, client *images.Client, name string) string {
	text := fmt.Sprintf("There is no worker image %s.", name)
	all, err := client.List(ctx)
	if err != nil {
		return text
	}
	nearest := selection.Nearest(name, all, nearestNames)
	if len(nearest) == 0 {
		return text + " There are no worker images at all."
	}
	return text + " The nearest names are:\n  - " + strings.Join(nearest, "\n  - ") +
		"\n\nThe resource worker_image makes an image that the catalog declares."
}

func awaitReady(ctx context.Context, client *images.Client, name string, limits timeouts.Value, diagnostics *diag.Diagnostics) *v1alpha1.WorkerImage {
	timeout, faults := limits.Read(ctx, defaultReadTimeout)
	diagnostics.Append(faults...)
	if diagnostics.HasError() {
		return nil
	}
	image, err := client.WaitReady(ctx, name, timeout, func(image *v1alpha1.WorkerImage) { logProgress(ctx, image) })
	var hopeless *images.NotReadyError
	var late *images.TimeoutError
	switch {
	case err == nil:
		return image
	case images.NotFound(err):
		diagnostics.AddError("There is no such worker image", explainMissing(ctx, client, name))
	case errors.As(err, &hopeless):
		diagnostics.AddError("The worker image will not become ready by itself", err.Error())
	case errors.As(err, &late):
		diagnostics.AddError("The worker image is not ready in time", err.Error()+
			"\n\nThe import goes on. Apply again to wait on, or set a longer timeouts.read.")
	default:
		diagnostics.AddError(client.Explain("wait for worker image "+name, err))
	}
	return nil
}

func logProgress(ctx context.Context, image *v1alpha1.WorkerImage) {
	status := newStatusModel(image)
	fields := map[string]any{"worker_image": image.Name, "phase": string(image.Status.Phase)}
	if status.Progress != nil {
		fields["progress"] = *status.Progress
	}
	if ready, found := status.Conditions[v1alpha1.ConditionReady]; found {
		fields["reason"] = ready.Reason
		if ready.Message != nil {
			fields["message"] = *ready.Message
		}
	}
	tflog.Info(ctx, "waiting for the worker image to be ready", fields)
}

// fill leaves the arguments as they are, but for those that the image decides.
func (m *imageDataSourceModel) fill(ctx context.Context, image *v1alpha1.WorkerImage) diag.Diagnostics {
	model := newImageModel(image)
	status, diagnostics := types.ObjectValueFrom(ctx, objectType(imageStatus().fields).AttrTypes, model.Status)
	m.Name = types.StringValue(model.Name)
	m.SchematicID = types.StringValue(model.SchematicID)
	m.Version = types.StringValue(model.Version)
	m.Labels = model.Labels
	m.Annotations = model.Annotations
	m.UID = types.StringValue(model.UID)
	m.CreationTimestamp = types.StringValue(model.CreationTimestamp)
	m.Status = status
	return diagnostics
}
