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
	"net"
	"strings"
	"testing"
	"time"
)

func TestOptionsThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"a goldens' namespace that is none", func(o *Options) { o.Images.GoldensNamespace = "Cozy Public" }, "--goldens-namespace"},
		{"a catalog that is in no namespace", func(o *Options) { o.Images.Catalog = "worker-image-catalog" }, "--catalog: Invalid"},
		{"a catalog without a name", func(o *Options) { o.Images.Catalog = "cozy-public/" }, "--catalog: Invalid"},
		{"a catalog whose name has too many parts", func(o *Options) { o.Images.Catalog = "a/b/c" }, "--catalog: Invalid"},
		{"a catalog in a namespace that is none", func(o *Options) { o.Images.Catalog = "Cozy/catalog" }, "--catalog: Invalid"},
		{"a key that a ConfigMap cannot have", func(o *Options) { o.Images.CatalogKey = "a/b" }, "--catalog-key"},
		{"a default schematic that is none", func(o *Options) { o.Images.Platform.SchematicID = "A" }, "--default-schematic-id"},
		{"a default version that is none", func(o *Options) { o.Images.Platform.Version = "1.13" }, "--default-talos-version"},
		{"a snapshot without a kubeconfig", func(o *Options) { o.Snapshot.Paths = []string{"x"} }, "--snapshot-kubeconfig: must be given"},
		{"a kubeconfig without a snapshot", func(o *Options) { o.Snapshot.Kubeconfig = "x" }, "--snapshot-kubeconfig: goes with"},
		{"a snapshot for the whole network", func(o *Options) {
			o.Snapshot.Paths, o.Snapshot.Kubeconfig = []string{"x"}, "y"
			o.Recommended.SecureServing.BindAddress = net.IPv4(192, 0, 2, 1)
		}, "--bind-address"},
		{"a Secret that is in no namespace", func(o *Options) { o.Serving.Secret = "serving" }, "--serving-secret: Invalid"},
		{"a Secret without names", func(o *Options) { o.Serving.Secret = "cozy-system/serving" }, "--serving-names: Required"},
		{"a Secret for a name that is none", func(o *Options) {
			o.Serving.Secret, o.Serving.Names = "cozy-system/serving", []string{"a b"}
		}, "--serving-names: Invalid"},
		{"a Secret in place of a file", func(o *Options) {
			o.Serving.Secret, o.Recommended.SecureServing.ServerCert.CertKey.CertFile = "cozy-system/serving", "x"
		}, "--tls-cert-file"},
		{"a Secret in a snapshot", func(o *Options) {
			o.Snapshot.Paths, o.Serving.Secret = []string{"x"}, "cozy-system/serving"
		}, "--serving-secret: Forbidden"},
		{"a certificate that expires before its successor can be used", func(o *Options) {
			o.Serving.Secret, o.Serving.Validity = "cozy-system/serving", time.Hour
		}, "--serving-validity"},
		{"a Lease that is in no namespace", func(o *Options) { o.History.Lease, o.History.Address = "history", "10.0.0.1:6443" }, "--history-lease: Invalid"},
		{"a Lease without an address", func(o *Options) { o.History.Lease = "cozy-system/history" }, "--history-address: Invalid"},
		{"an address without a port", func(o *Options) { o.History.Lease, o.History.Address = "cozy-system/history", "10.0.0.1" }, "--history-address: Invalid"},
		{"a shutdown that is over before it begins", func(o *Options) { o.Serving.ShutdownDelay = -time.Second }, "--shutdown-delay-duration"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := NewOptions()
			test.change(o)
			if err := o.Complete(); err != nil && strings.Contains(err.Error(), "find a free port") {
				// The address is not one of this machine; what is refused is that it was asked for.
				o.Recommended.SecureServing.Listener = nil
			}
			if err := o.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that names %s", err, test.want)
			}
		})
	}
}

func TestDefaultOptionsAreValid(t *testing.T) {
	if err := NewOptions().Validate(); err != nil {
		t.Error(err)
	}
}

func TestTheCommandSaysWhatIsWrongWithItsFlags(t *testing.T) {
	cmd := NewCommand(t.Context())
	cmd.SetArgs([]string{"--default-talos-version=1.13", "--snapshot-kubeconfig=x"})
	err := cmd.Execute()
	for _, want := range []string{"--default-talos-version", "--snapshot-kubeconfig"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that names %s", err, want)
		}
	}
}
