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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// configure hands the provider a configuration with some of its fields.
func configure(t *testing.T, fields map[string]tftypes.Value) *provider.ConfigureResponse {
	t.Helper()
	for _, variable := range []string{"KUBE_HOST", "KUBE_TOKEN", "KUBE_CONFIG_PATH", "KUBE_CONFIG_PATHS", "KUBE_CTX", "KUBERNETES_SERVICE_HOST"} {
		t.Setenv(variable, "")
	}
	tested := New("test")
	var schema provider.SchemaResponse
	tested.Schema(t.Context(), provider.SchemaRequest{}, &schema)
	object, ok := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("the schema is no object")
	}
	values := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		values[name] = tftypes.NewValue(kind, nil)
	}
	for name, value := range fields {
		values[name] = value
	}
	var response provider.ConfigureResponse
	tested.Configure(t.Context(), provider.ConfigureRequest{Config: tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(object, values)}}, &response)
	return &response
}

func word(text string) tftypes.Value { return tftypes.NewValue(tftypes.String, text) }

func TestTheProviderHandsOutAccess(t *testing.T) {
	response := configure(t, map[string]tftypes.Value{"host": word("https://a.example.org"), "token": word("secret")})
	if response.Diagnostics.HasError() {
		t.Fatal(response.Diagnostics)
	}
	for name, data := range map[string]any{"data sources": response.DataSourceData, "resources": response.ResourceData} {
		config, err := connect(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if config.Host != "https://a.example.org" || config.BearerToken != "secret" || config.UserAgent != "terraform-provider-workerimage/test" {
			t.Errorf("%s: got %v", name, config)
		}
	}
}

func TestAFaultIsShownAtItsField(t *testing.T) {
	exec := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"api_version": tftypes.String, "command": tftypes.String,
		"args": tftypes.List{ElementType: tftypes.String}, "env": tftypes.Map{ElementType: tftypes.String},
	}}
	response := configure(t, map[string]tftypes.Value{
		"host": word("ftp://a"), "config_path": word("/no/such/file"),
		"exec": tftypes.NewValue(exec, map[string]tftypes.Value{
			"api_version": word("client.authentication.k8s.io/v1"), "command": tftypes.NewValue(tftypes.String, nil),
			"args": tftypes.NewValue(exec.AttributeTypes["args"], nil), "env": tftypes.NewValue(exec.AttributeTypes["env"], nil)}),
	})
	var got []string
	for _, fault := range response.Diagnostics {
		located, ok := fault.(diag.DiagnosticWithPath)
		if !ok {
			t.Fatalf("it is nowhere: %v", fault)
		}
		got = append(got, located.Path().String())
	}
	slices.Sort(got)
	want := []string{path.Root("config_path").String(), path.Root("exec").AtName("command").String(), path.Root("host").String()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsNotKnownYetIsNoErrorUntilItIsNeeded(t *testing.T) {
	response := configure(t, map[string]tftypes.Value{
		"host": tftypes.NewValue(tftypes.String, tftypes.UnknownValue), "token": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})
	if response.Diagnostics.HasError() {
		t.Fatal(response.Diagnostics)
	}
	if _, err := connect(response.DataSourceData); err == nil || !strings.Contains(err.Error(), "host, token") {
		t.Errorf("got %v", err)
	}
}

func TestNothingConfiguredIsAnError(t *testing.T) {
	if response := configure(t, nil); !response.Diagnostics.HasError() {
		t.Error("no error")
	}
}

func TestNamesHaveThePrefixOfTheProvider(t *testing.T) {
	tested := New("test")
	var got []string
	for _, construct := range tested.DataSources(t.Context()) {
		var response datasource.MetadataResponse
		construct().Metadata(t.Context(), datasource.MetadataRequest{ProviderTypeName: typeName}, &response)
		got = append(got, "data "+response.TypeName)
	}
	for _, construct := range tested.Resources(t.Context()) {
		var response resource.MetadataResponse
		construct().Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: typeName}, &response)
		got = append(got, response.TypeName)
	}
	want := []string{"data workerimage_worker_image", "data workerimage_worker_images", "data workerimage_worker_image_catalog", "workerimage_worker_image"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
