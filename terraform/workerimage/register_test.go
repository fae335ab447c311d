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

package workerimage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	frameworkresource "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
	"github.com/cozystack/workerimage-apiserver/terraform/workerimage"
)

// host is a provider of somebody else's.
type host struct {
	config *rest.Config
}

// hostClient is what it hands to its data sources and resources.
type hostClient struct {
	config *rest.Config
}

func connect(providerData any) (*rest.Config, error) {
	client, ok := providerData.(*hostClient)
	if !ok {
		return nil, fmt.Errorf("the provider hands out %T", providerData)
	}
	if client.config == nil {
		return nil, errors.New("the host says no")
	}
	return client.config, nil
}

func (h *host) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName = "cozystack"
}

func (h *host) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{}
}

func (h *host) Configure(_ context.Context, _ provider.ConfigureRequest, response *provider.ConfigureResponse) {
	client := &hostClient{config: h.config}
	response.DataSourceData, response.ResourceData = client, client
}

func (h *host) DataSources(context.Context) []func() datasource.DataSource {
	return append([]func() datasource.DataSource{}, workerimage.DataSources(connect)...)
}

func (h *host) Resources(context.Context) []func() frameworkresource.Resource {
	return append([]func() frameworkresource.Resource{}, workerimage.Resources(connect)...)
}

func runInHost(t *testing.T, h *host, steps ...resource.TestStep) {
	t.Helper()
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){"cozystack": providerserver.NewProtocol6WithError(h)},
		Steps:                    steps,
	})
}

const inHost = `
resource "cozystack_worker_image" "this" {
  schematic_id = "edge"
  version      = "v1.13.6"
}
data "cozystack_worker_image" "this" {
  name = "talos-worker-gpu-v1.13.6"
}
data "cozystack_worker_images" "this" {
}
data "cozystack_worker_image_catalog" "this" {
}
`

func TestAnotherProviderRegistersAllUnderItsPrefix(t *testing.T) {
	server := imagestest.NewServer(t, imagestest.Image("gpu", "v1.13.6"))
	runInHost(t, &host{config: server.Config()}, resource.TestStep{
		Config: inHost,
		Check: resource.ComposeAggregateTestCheckFunc(
			resource.TestCheckResourceAttr("cozystack_worker_image.this", "name", "talos-worker-edge-v1.13.6"),
			resource.TestCheckResourceAttr("data.cozystack_worker_image.this", "status.phase", "Ready"),
			resource.TestCheckResourceAttrSet("data.cozystack_worker_images.this", "images.0.name"),
			resource.TestCheckResourceAttr("data.cozystack_worker_image_catalog.this", "entries.#", "0")),
	})
}

func TestAProviderThatHasNoAccessSaysWhy(t *testing.T) {
	runInHost(t, &host{}, resource.TestStep{
		Config:      "data \"cozystack_worker_images\" \"this\" {\n}\n",
		ExpectError: says("the host says no"),
	})
}

// equal is an error that shows the difference.
func equal(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("-want +got:\n%s", diff)
	}
	return nil
}
