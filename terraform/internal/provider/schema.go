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

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/kubeconfig"
)

type model struct {
	Host                  types.String `tfsdk:"host"`
	Token                 types.String `tfsdk:"token"`
	Insecure              types.Bool   `tfsdk:"insecure"`
	TLSServerName         types.String `tfsdk:"tls_server_name"`
	ClientCertificate     types.String `tfsdk:"client_certificate"`
	ClientKey             types.String `tfsdk:"client_key"`
	ClusterCACertificate  types.String `tfsdk:"cluster_ca_certificate"`
	ConfigPath            types.String `tfsdk:"config_path"`
	ConfigPaths           types.List   `tfsdk:"config_paths"`
	ConfigContext         types.String `tfsdk:"config_context"`
	ConfigContextAuthInfo types.String `tfsdk:"config_context_auth_info"`
	ConfigContextCluster  types.String `tfsdk:"config_context_cluster"`
	ProxyURL              types.String `tfsdk:"proxy_url"`
	Exec                  *execModel   `tfsdk:"exec"`
}

type execModel struct {
	APIVersion types.String `tfsdk:"api_version"`
	Command    types.String `tfsdk:"command"`
	Args       types.List   `tfsdk:"args"`
	Env        types.Map    `tfsdk:"env"`
}

func (p *workerImageProvider) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "Worker images of a Cozystack cluster: pick the right one, list them and the catalog, and make one. " +
			"The provider is configured like the Kubernetes provider, by the same fields and environment variables.",
		Attributes: map[string]schema.Attribute{
			"host":                     text("Address of the API server.", "KUBE_HOST"),
			"token":                    secret("Bearer token.", "KUBE_TOKEN"),
			"insecure":                 schema.BoolAttribute{Optional: true, MarkdownDescription: "Leaves the server's certificate unverified. Falls back to `KUBE_INSECURE`."},
			"tls_server_name":          text("Name that the server's certificate is verified against.", "KUBE_TLS_SERVER_NAME"),
			"client_certificate":       text("Client certificate in PEM.", "KUBE_CLIENT_CERT_DATA"),
			"client_key":               secret("Key of the client certificate in PEM.", "KUBE_CLIENT_KEY_DATA"),
			"cluster_ca_certificate":   text("Certificates in PEM that the server's is verified with.", "KUBE_CLUSTER_CA_CERT_DATA"),
			"config_path":              text("Path of a kubeconfig.", "KUBE_CONFIG_PATH"),
			"config_paths":             schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Paths of kubeconfigs that are merged. Falls back to `KUBE_CONFIG_PATHS`, separated as in `PATH`."},
			"config_context":           text("Context of the kubeconfig; the current one by default.", "KUBE_CTX"),
			"config_context_auth_info": text("User of the kubeconfig, in the place of the context's.", "KUBE_CTX_AUTH_INFO"),
			"config_context_cluster":   text("Cluster of the kubeconfig, in the place of the context's.", "KUBE_CTX_CLUSTER"),
			"proxy_url":                text("Proxy to reach the server by: `http`, `https` or `socks5`.", "KUBE_PROXY_URL"),
		},
		Blocks: map[string]schema.Block{"exec": execBlock()},
	}
}

func execBlock() schema.Block {
	return schema.SingleNestedBlock{
		MarkdownDescription: "A program that hands out credentials. It takes the place of all other credentials.",
		Attributes: map[string]schema.Attribute{
			"api_version": schema.StringAttribute{Optional: true, MarkdownDescription: "`client.authentication.k8s.io/v1` or `client.authentication.k8s.io/v1beta1`. Required within the block."},
			"command":     schema.StringAttribute{Optional: true, MarkdownDescription: "The program. Required within the block."},
			"args":        schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Its arguments."},
			"env":         schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Environment variables it gets besides the provider's own."},
		},
	}
}

func text(description, variable string) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description + " Falls back to `" + variable + "`."}
}

func secret(description, variable string) schema.Attribute {
	return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: description + " Falls back to `" + variable + "`."}
}

// unknown returns the names of the fields whose values are not known yet, in the order of the schema.
func (m model) unknown() []string {
	type field struct {
		name  string
		value attr.Value
	}
	fields := []field{
		{"host", m.Host}, {"token", m.Token}, {"insecure", m.Insecure}, {"tls_server_name", m.TLSServerName},
		{"client_certificate", m.ClientCertificate}, {"client_key", m.ClientKey}, {"cluster_ca_certificate", m.ClusterCACertificate},
		{"config_path", m.ConfigPath}, {"config_paths", m.ConfigPaths}, {"config_context", m.ConfigContext},
		{"config_context_auth_info", m.ConfigContextAuthInfo}, {"config_context_cluster", m.ConfigContextCluster}, {"proxy_url", m.ProxyURL},
	}
	if m.Exec != nil {
		fields = append(fields, field{"exec.api_version", m.Exec.APIVersion}, field{"exec.command", m.Exec.Command},
			field{"exec.args", m.Exec.Args}, field{"exec.env", m.Exec.Env})
	}
	var unknown []string
	for _, f := range fields {
		if f.value.IsUnknown() {
			unknown = append(unknown, f.name)
		}
	}
	return unknown
}

func (m model) config(ctx context.Context, diagnostics *diag.Diagnostics) kubeconfig.Config {
	config := kubeconfig.Config{
		Host:                  m.Host.ValueString(),
		Token:                 m.Token.ValueString(),
		Insecure:              m.Insecure.ValueBoolPointer(),
		TLSServerName:         m.TLSServerName.ValueString(),
		ClientCertificate:     m.ClientCertificate.ValueString(),
		ClientKey:             m.ClientKey.ValueString(),
		ClusterCACertificate:  m.ClusterCACertificate.ValueString(),
		ConfigPath:            m.ConfigPath.ValueString(),
		ConfigContext:         m.ConfigContext.ValueString(),
		ConfigContextAuthInfo: m.ConfigContextAuthInfo.ValueString(),
		ConfigContextCluster:  m.ConfigContextCluster.ValueString(),
		ProxyURL:              m.ProxyURL.ValueString(),
	}
	diagnostics.Append(m.ConfigPaths.ElementsAs(ctx, &config.ConfigPaths, false)...)
	if m.Exec != nil {
		config.Exec = &kubeconfig.Exec{APIVersion: m.Exec.APIVersion.ValueString(), Command: m.Exec.Command.ValueString()}
		diagnostics.Append(m.Exec.Args.ElementsAs(ctx, &config.Exec.Args, false)...)
		diagnostics.Append(m.Exec.Env.ElementsAs(ctx, &config.Exec.Env, false)...)
	}
	return config
}
