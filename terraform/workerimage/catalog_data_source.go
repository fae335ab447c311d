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

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/selection"
)

// catalogDataSource is the data source worker_image_catalog.
type catalogDataSource struct {
	access
}

var _ datasource.DataSourceWithConfigure = &catalogDataSource{}

type catalogDataSourceModel struct {
	SchematicID       types.String `tfsdk:"schematic_id"`
	VersionConstraint types.String `tfsdk:"version_constraint"`
	DeclaredOnly      types.Bool   `tfsdk:"declared_only"`
	Entries           []entryModel `tfsdk:"entries"`
}

type entryModel struct {
	Name             string           `tfsdk:"name"`
	SchematicID      string           `tfsdk:"schematic_id"`
	Version          string           `tfsdk:"version"`
	ImageFactoryURL  *string          `tfsdk:"image_factory_url"`
	Storage          *string          `tfsdk:"storage"`
	StorageClassName *string          `tfsdk:"storage_class_name"`
	Declared         bool             `tfsdk:"declared"`
	Status           entryStatusModel `tfsdk:"status"`
}

type entryStatusModel struct {
	Phase        *string                   `tfsdk:"phase"`
	Materialized bool                      `tfsdk:"materialized"`
	Pools        []poolModel               `tfsdk:"pools"`
	PoolCount    int64                     `tfsdk:"pool_count"`
	Conditions   map[string]conditionModel `tfsdk:"conditions"`
}

func (d *catalogDataSource) Metadata(_ context.Context, request datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_worker_image_catalog"
}

func (d *catalogDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "Lists the images that could be: what the operator's catalog declares, and what pools ask for that nobody declares.",
		Attributes: dataSourceAttributes(map[string]schema.Attribute{
			"schematic_id":       filterAttribute("Id of the Image Factory schematic, or the name a mirror gives it."),
			"version_constraint": constraintAttribute(),
			"declared_only":      schema.BoolAttribute{Optional: true, MarkdownDescription: "Leaves out what pools ask for and the catalog does not declare."},
		}, []computed{
			{name: "entries", many: true, fields: entryAttributes(),
				description: "The entries that match, the newest version first, and those of one version by name."},
		}),
	}
}

func entryAttributes() []computed {
	return []computed{
		{name: "name", value: types.StringType, description: "Name that the image has or would have."},
		{name: "schematic_id", value: types.StringType, description: "Id of the Image Factory schematic, or the name a mirror gives it."},
		{name: "version", value: types.StringType, description: "The full Talos release."},
		{name: "image_factory_url", value: types.StringType, description: "The factory or mirror that the image is imported from."},
		{name: "storage", value: types.StringType, description: "The size that is asked for, as a quantity."},
		{name: "storage_class_name", value: types.StringType, description: "The class that is asked for. Null for the default of the cluster."},
		{name: "declared", value: types.BoolType, description: "Whether the catalog has the entry."},
		{name: "status", description: "The entry compared with the cluster. It moves by itself.", fields: []computed{
			{name: "phase", value: types.StringType, description: "The phase of the image, or `Available`, `Missing` or `Invalid`. There may be others one day."},
			{name: "materialized", value: types.BoolType, description: "Whether the image exists."},
			poolsAttribute(),
			{name: "pool_count", value: types.Int64Type, description: "The number of pools listed."},
			conditionsAttribute("Conditions by type: `Valid` and `Materialized`."),
		}},
	}
}

func (d *catalogDataSource) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.data = request.ProviderData
}

func (d *catalogDataSource) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	var model catalogDataSourceModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	constraints, err := parseConstraint(model.VersionConstraint)
	if err != nil {
		response.Diagnostics.AddAttributeError(path.Root("version_constraint"), "Not a version constraint", err.Error())
		return
	}
	client := d.client(&response.Diagnostics)
	if client == nil {
		return
	}
	all, err := client.CatalogEntries(ctx)
	if err != nil {
		response.Diagnostics.AddError(client.Explain("list the catalog entries", err))
		return
	}
	model.Entries = []entryModel{}
	for _, entry := range selection.Entries(all, model.SchematicID.ValueString(), constraints) {
		if entry.Status.Declared || !model.DeclaredOnly.ValueBool() {
			model.Entries = append(model.Entries, newEntryModel(entry))
		}
	}
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
}

func newEntryModel(entry v1alpha1.CatalogEntry) entryModel {
	return entryModel{
		Name:             entry.Name,
		SchematicID:      entry.Spec.SchematicID,
		Version:          entry.Spec.Version,
		ImageFactoryURL:  known(entry.Spec.ImageFactoryURL),
		Storage:          known(entry.Spec.Storage),
		StorageClassName: known(entry.Spec.StorageClassName),
		Declared:         entry.Status.Declared,
		Status: entryStatusModel{
			Phase:        known(entry.Status.Phase),
			Materialized: entry.Status.Materialized,
			Pools:        newPoolModels(entry.Status.Pools),
			PoolCount:    int64(entry.Status.PoolCount),
			Conditions:   newConditionModels(entry.Status.Conditions),
		},
	}
}
