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
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/pkg/apiserver"
	"github.com/cozystack/workerimage-apiserver/pkg/snapshot"
)

// SnapshotOptions let the server read manifests instead of a cluster. It then listens on the loopback
// interface only, asks nobody who the caller is, and knows one user: the operator of its kubeconfig.
type SnapshotOptions struct {
	Paths      []string
	Kubeconfig string
}

// AddFlags adds the flags of a snapshot.
func (o *SnapshotOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.Paths, "snapshot", o.Paths,
		"Serve from manifests instead of from a cluster: a file, a folder, or - for standard input. May be repeated. "+
			"Files are read again when they change. Listens on the loopback interface, on a free port unless --secure-port is given.")
	fs.StringVar(&o.Kubeconfig, "snapshot-kubeconfig", o.Kubeconfig,
		"Where to write the kubeconfig of the operator, the one user of a snapshot.")
}

// Enabled is true when there is no cluster.
func (o *SnapshotOptions) Enabled() bool { return len(o.Paths) > 0 }

func (o *SnapshotOptions) validate(recommended *genericoptions.RecommendedOptions) []error {
	var errs []error
	if !o.Enabled() {
		if o.Kubeconfig != "" {
			errs = append(errs, errors.New("--snapshot-kubeconfig: goes with --snapshot"))
		}
		return errs
	}
	if o.Kubeconfig == "" {
		errs = append(errs, errors.New("--snapshot-kubeconfig: must be given with --snapshot"))
	}
	if ip := recommended.SecureServing.BindAddress; !ip.IsLoopback() {
		errs = append(errs, fmt.Errorf("--bind-address: a snapshot is served on the loopback interface only, not on %s", ip))
	}
	return errs
}

// complete takes away what a cluster is needed for.
func (o *SnapshotOptions) complete(recommended *genericoptions.RecommendedOptions) error {
	recommended.CoreAPI = nil
	recommended.Authentication = nil
	recommended.Authorization = nil
	recommended.Admission = nil
	recommended.Features.EnablePriorityAndFairness = false

	serving := recommended.SecureServing
	serving.ServerCert.CertDirectory = "" // the certificate lives as long as the process
	if serving.BindAddress.IsUnspecified() {
		serving.BindAddress = net.IPv4(127, 0, 0, 1)
	}
	if serving.BindPort != defaultSecurePort {
		return nil
	}
	listener, _, err := genericoptions.CreateListener("tcp", net.JoinHostPort(serving.BindAddress.String(), "0"), net.ListenConfig{})
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	serving.Listener = listener
	serving.BindPort = listener.Addr().(*net.TCPAddr).Port
	return nil
}

// defaultSecurePort is what --secure-port holds when it is not given.
var defaultSecurePort = genericoptions.NewSecureServingOptions().BindPort

func (o *SnapshotOptions) applyTo(ctx context.Context, config *apiserver.Config) error {
	snap, err := snapshot.Open(ctx, o.Paths, os.Stdin)
	if err != nil {
		return err
	}
	config.Extra.Sources = snap.Sources()
	config.Extra.DataVolumes = snap.DataVolumes(config.Extra.GoldensNamespace)
	config.Extra.Claims = snap.Claims(config.Extra.GoldensNamespace)
	config.Extra.Background = append(config.Extra.Background, snap.Run)

	token := rand.Text()
	operator := &user.DefaultInfo{Name: "operator", Groups: []string{user.SystemPrivilegedGroup}}
	config.Generic.Authentication.Authenticator = group.NewAuthenticatedGroupAdder(
		bearertoken.New(tokenfile.New(map[string]*user.DefaultInfo{token: operator})))
	config.Generic.Authorization.Authorizer = authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)
	return o.writeKubeconfig(ctx, config, token)
}

func (o *SnapshotOptions) writeKubeconfig(ctx context.Context, config *apiserver.Config, token string) error {
	serving := config.Generic.SecureServing
	ca, _ := serving.Cert.CurrentCertKeyContent()
	const name = "snapshot"
	kubeconfig := clientcmdapi.Config{
		CurrentContext: name,
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: "operator"}},
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   "https://" + serving.Listener.Addr().String(),
			CertificateAuthorityData: ca,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"operator": {Token: token}},
	}
	if err := os.MkdirAll(filepath.Dir(o.Kubeconfig), 0o755); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if err := clientcmd.WriteToFile(kubeconfig, o.Kubeconfig); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	klog.FromContext(ctx).Info("Wrote the operator's kubeconfig", "path", o.Kubeconfig)
	return nil
}
