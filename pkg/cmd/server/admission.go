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

package server

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
)

// disableUnservedPlugins turns off the admission plugins whose policies the cluster is too old to serve:
// they would wait for them, and every write with them. Webhooks and validating policies are served by every
// cluster that is supported.
func disableUnservedPlugins(o *genericoptions.AdmissionOptions, config *genericapiserver.RecommendedConfig) error {
	if o == nil || config.ClientConfig == nil {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(config.ClientConfig)
	if err != nil {
		return err
	}
	group := admissionregistrationv1.SchemeGroupVersion.String()
	resources, err := client.ServerResourcesForGroupVersion(group)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("find out which admission policies the cluster serves: %w", err)
	}
	if resources != nil {
		for _, r := range resources.APIResources {
			if r.Name == "mutatingadmissionpolicies" {
				return nil
			}
		}
	}
	o.DisablePlugins = append(o.DisablePlugins, mutatingadmissionpolicy.PluginName)
	return nil
}
