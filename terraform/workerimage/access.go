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
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/images"
)

// access is the way to a cluster. It is gone only when a request is to be made: a plan that makes none must not fail for
// a provider that cannot be configured yet.
type access struct {
	connect Connect
	data    any
}

// client returns nil where it adds an error.
func (a *access) client(diagnostics *diag.Diagnostics) *images.Client {
	config, err := a.config()
	if err != nil {
		diagnostics.AddError("The provider is not configured", err.Error())
		return nil
	}
	client, err := images.NewClient(config)
	if err != nil {
		diagnostics.AddError("The provider's configuration cannot be used", err.Error())
		return nil
	}
	return client
}

func (a *access) config() (*rest.Config, error) {
	if a.data == nil {
		return nil, errors.New("there is no provider configuration to reach a cluster with")
	}
	return a.connect(a.data)
}
