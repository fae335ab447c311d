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

package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/kubeconfig"
	"github.com/cozystack/workerimage-apiserver/terraform/workerimage"
)

// typeName is the prefix of the data sources and the resource.
const typeName = "workerimage"

type workerImageProvider struct {
	version string
}

var _ provider.Provider = &workerImageProvider{}

// New returns the provider in the version that it was built as.
func New(version string) provider.Provider {
	return &workerImageProvider{version: version}
}

// connection is what the provider hands to its data sources and resources.
type connection struct {
	config *rest.Config
	// unknown lists the fields whose values depend on what has not been applied yet.
	unknown []string
}

func connect(providerData any) (*rest.Config, error) {
	c, ok := providerData.(*connection)
	if !ok {
		return nil, fmt.Errorf("the provider hands out %T", providerData)
	}
	if len(c.unknown) > 0 {
		return nil, errors.New("these fields of the provider's configuration are not known before other resources are applied: " +
			strings.Join(c.unknown, ", ") + ". Apply those first, with -target, or configure the provider with values that are known.")
	}
	return c.config, nil
}

func (p *workerImageProvider) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName = typeName
	response.Version = p.version
}

func (p *workerImageProvider) Configure(ctx context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	var model model
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	found := &connection{unknown: model.unknown()}
	if len(found.unknown) == 0 {
		found.config = p.configure(ctx, model, &response.Diagnostics)
	}
	response.DataSourceData, response.ResourceData = found, found
}

func (p *workerImageProvider) configure(ctx context.Context, model model, diagnostics *diag.Diagnostics) *rest.Config {
	config, err := model.config(ctx, diagnostics).WithEnvironment(os.Getenv)
	if err != nil {
		addError(diagnostics, err)
		return nil
	}
	access, faults := config.REST()
	for _, fault := range faults {
		addError(diagnostics, fault)
	}
	if access != nil {
		access.UserAgent = "terraform-provider-workerimage/" + p.version
	}
	return access
}

// addError puts an error to the field that is at fault.
func addError(diagnostics *diag.Diagnostics, err error) {
	const summary = "The cluster cannot be reached with this configuration"
	var field *kubeconfig.FieldError
	if !errors.As(err, &field) {
		diagnostics.AddError(summary, err.Error()+".")
		return
	}
	var at path.Path
	for i, name := range strings.Split(field.Field, ".") {
		if i == 0 {
			at = path.Root(name)
			continue
		}
		at = at.AtName(name)
	}
	diagnostics.AddAttributeError(at, summary, err.Error()+".")
}

func (p *workerImageProvider) DataSources(context.Context) []func() datasource.DataSource {
	return workerimage.DataSources(connect)
}

func (p *workerImageProvider) Resources(context.Context) []func() resource.Resource {
	return workerimage.Resources(connect)
}
