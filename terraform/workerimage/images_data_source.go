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

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// imagesDataSource is the data source worker_images.
type imagesDataSource struct {
	access
}

var _ datasource.DataSourceWithConfigure = &imagesDataSource{}

type imagesDataSourceModel struct {
	SchematicID       types.String `tfsdk:"schematic_id"`
	Version           types.String `tfsdk:"version"`
	VersionConstraint types.String `tfsdk:"version_constraint"`
	StorageClass      types.String `tfsdk:"storage_class"`
	ReadyOnly         types.Bool   `tfsdk:"ready_only"`
	Images            []imageModel `tfsdk:"images"`
}

func (d *imagesDataSource) Metadata(_ context.Context, request datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_worker_images"
}

func (d *imagesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "Lists worker images. None is no error.",
		Attributes: dataSourceAttributes(map[string]schema.Attribute{
			"schematic_id":       filterAttribute("Id of the Image Factory schematic, or the name a mirror gives it."),
			"version":            filterAttribute("The full Talos release, such as `v1.13.6`. Excludes `version_constraint`."),
			"version_constraint": constraintAttribute(stringvalidator.ConflictsWith(path.MatchRoot("version"))),
			"storage_class":      filterAttribute("The StorageClass in effect, `status.storage_class.effective`."),
			"ready_only":         schema.BoolAttribute{Optional: true, MarkdownDescription: "Lists only images that are ready now."},
		}, []computed{
			{name: "images", many: true, fields: imageAttributes(),
				description: "The images that match, the newest version first, and those of one version by name."},
		}),
	}
}

func (d *imagesDataSource) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.data = request.ProviderData
}

func (d *imagesDataSource) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	var model imagesDataSourceModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	query, err := newQuery(model.SchematicID, model.Version, model.VersionConstraint, model.StorageClass, model.ReadyOnly, types.BoolNull())
	if err != nil {
		response.Diagnostics.AddAttributeError(path.Root("version_constraint"), "Not a version constraint", err.Error())
		return
	}
	client := d.client(&response.Diagnostics)
	if client == nil {
		return
	}
	all, err := client.List(ctx)
	if err != nil {
		response.Diagnostics.AddError(client.Explain("list the worker images", err))
		return
	}
	model.Images = []imageModel{}
	for _, image := range query.Images(all) {
		model.Images = append(model.Images, newImageModel(&image))
	}
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
}
