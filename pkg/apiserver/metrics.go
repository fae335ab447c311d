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

package apiserver

import (
	"context"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// register adds metrics to those of the process, until the function that it returns is called. One that
// another server in this process has added stays that server's.
func register(ctx context.Context, all []metrics.Registerable, collector metrics.StableCollector) (unregister func()) {
	var own []metrics.Collector
	for _, metric := range all {
		if err := legacyregistry.Register(metric); err != nil {
			klog.FromContext(ctx).Info("A metric is not served", "metric", metric.FQName(), "err", err)
			continue
		}
		own = append(own, metric)
	}
	if err := legacyregistry.CustomRegister(collector); err != nil {
		klog.FromContext(ctx).Info("Metrics are not served", "err", err)
	} else {
		own = append(own, collector)
	}
	return func() {
		for _, metric := range own {
			legacyregistry.Registerer().Unregister(metric)
		}
	}
}

// certificate returns the certificate that a server shows, as PEM.
func certificate(serving *genericapiserver.SecureServingInfo) []byte {
	if serving == nil || serving.Cert == nil {
		return nil
	}
	bundle, _ := serving.Cert.CurrentCertKeyContent()
	return bundle
}
