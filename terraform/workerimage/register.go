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
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"k8s.io/client-go/rest"
)

// Connect finds the access to a cluster in what a provider hands to its data sources and resources.
type Connect func(providerData any) (*rest.Config, error)

// DataSources returns the data sources worker_image, worker_images and worker_image_catalog.
func DataSources(connect Connect) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &imageDataSource{access: access{connect: connect}} },
		func() datasource.DataSource { return &imagesDataSource{access: access{connect: connect}} },
		func() datasource.DataSource { return &catalogDataSource{access: access{connect: connect}} },
	}
}

// Resources returns the resource worker_image.
func Resources(connect Connect) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &imageResource{access: access{connect: connect}} },
	}
}
