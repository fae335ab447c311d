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

// terraform-provider-workerimage gives OpenTofu and Terraform the worker images of a Cozystack cluster.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	workerimage "github.com/cozystack/workerimage-apiserver/terraform/internal/provider"
)

// version is set when the provider is built.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and for OpenTofu to be pointed at this process")
	flag.Parse()
	err := providerserver.Serve(context.Background(), func() provider.Provider { return workerimage.New(version) },
		providerserver.ServeOpts{Address: "registry.terraform.io/cozystack/workerimage", Debug: *debug})
	if err != nil {
		log.Fatal(err)
	}
}
