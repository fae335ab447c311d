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
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// imageResource is the resource worker_image.
type imageResource struct {
	access
}

var (
	_ resource.ResourceWithConfigure   = &imageResource{}
	_ resource.ResourceWithModifyPlan  = &imageResource{}
	_ resource.ResourceWithImportState = &imageResource{}
)

type imageResourceModel struct {
	Name              types.String   `tfsdk:"name"`
	SchematicID       types.String   `tfsdk:"schematic_id"`
	Version           types.String   `tfsdk:"version"`
	Labels            types.Map      `tfsdk:"labels"`
	Annotations       types.Map      `tfsdk:"annotations"`
	RetainOnDelete    types.Bool     `tfsdk:"retain_on_delete"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
	UID               types.String   `tfsdk:"uid"`
	CreationTimestamp types.String   `tfsdk:"creation_timestamp"`
	Status            types.Object   `tfsdk:"status"`
}

var (
	schematicPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	versionPattern   = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$`)
)

func (r *imageResource) Metadata(_ context.Context, request resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_worker_image"
}

func (r *imageResource) Schema(ctx context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	stable := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	replaced := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	attributes := resourceAttributes(map[string]schema.Attribute{}, []computed{imageStatus()})
	for _, metadata := range metadataAttributes() {
		attributes[metadata.name] = schema.StringAttribute{Computed: true, MarkdownDescription: metadata.description, PlanModifiers: stable}
	}
	attributes["name"] = schema.StringAttribute{
		Computed:            true,
		MarkdownDescription: "Name of the image, `talos-worker-<schematic_id>-<version>`. It is known when the plan is made.",
	}
	attributes["schematic_id"] = schema.StringAttribute{
		Required: true, PlanModifiers: replaced,
		MarkdownDescription: "Id of the Image Factory schematic, or the name a mirror gives it. Another one is another image.",
		Validators:          []validator.String{stringvalidator.RegexMatches(schematicPattern, "must consist of lower-case letters, digits and dashes, such as gpu-nvidia")},
	}
	attributes["version"] = schema.StringAttribute{
		Required: true, PlanModifiers: replaced,
		MarkdownDescription: "The full Talos release, such as `v1.13.6`. Another one is another image.",
		Validators:          []validator.String{stringvalidator.RegexMatches(versionPattern, "must be a full Talos release, such as v1.13.6")},
	}
	attributes["labels"] = metadataMap("Labels of the image. Only those that are listed here are managed; others on the image stay.")
	attributes["annotations"] = metadataMap("Annotations of the image. Only those that are listed here are managed; others on the image stay.")
	attributes["retain_on_delete"] = schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(false),
		MarkdownDescription: "Leaves the image in the cluster when it is destroyed or replaced here. It counts as it was last applied.",
	}
	attributes["timeouts"] = timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: "How long an image of the same name that is being deleted is waited for. 10 minutes by default.",
		Delete: true, DeleteDescription: "How long the deletion is waited for. 10 minutes by default.",
	})
	response.Schema = schema.Schema{
		MarkdownDescription: "Makes an image that the operator's catalog declares. It is there as soon as its import begins: " +
			"the data source `worker_image` with `wait_for = \"Ready\"` waits for the end. " +
			"An image that anybody uses is not deleted; `retain_on_delete` leaves it to them.",
		Attributes: attributes,
	}
}

func metadataMap(description string) schema.Attribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description}
}

func (r *imageResource) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.data = request.ProviderData
}

// ModifyPlan tells the name as soon as what it is made of is known.
func (r *imageResource) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() {
		return
	}
	var schematicID, version types.String
	response.Diagnostics.Append(request.Plan.GetAttribute(ctx, path.Root("schematic_id"), &schematicID)...)
	response.Diagnostics.Append(request.Plan.GetAttribute(ctx, path.Root("version"), &version)...)
	if response.Diagnostics.HasError() || schematicID.IsUnknown() || version.IsUnknown() {
		return
	}
	name := imageName(schematicID.ValueString(), version.ValueString())
	response.Diagnostics.Append(response.Plan.SetAttribute(ctx, path.Root("name"), name)...)
}

// ImportState takes the name of an image. What the API does not keep begins with its default.
func (r *imageResource) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("name"), request, response)
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("retain_on_delete"), false)...)
}

func imageName(schematicID, version string) string {
	return "talos-worker-" + schematicID + "-" + version
}

// fill takes over what the API says. Of labels and annotations that is those that are managed here.
func (m *imageResourceModel) fill(ctx context.Context, image *v1alpha1.WorkerImage) diag.Diagnostics {
	model := newImageModel(image)
	status, diagnostics := types.ObjectValueFrom(ctx, objectType(imageStatus().fields).AttrTypes, model.Status)
	m.Name = types.StringValue(model.Name)
	m.SchematicID = types.StringValue(model.SchematicID)
	m.Version = types.StringValue(model.Version)
	m.UID = types.StringValue(model.UID)
	m.CreationTimestamp = types.StringValue(model.CreationTimestamp)
	m.Status = status
	var faults diag.Diagnostics
	m.Labels, faults = managed(ctx, m.Labels, image.Labels)
	diagnostics.Append(faults...)
	m.Annotations, faults = managed(ctx, m.Annotations, image.Annotations)
	return append(diagnostics, faults...)
}
