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

package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cozystack/workerimage-apiserver/hack/stack/pki"
)

const adminKubeconfig = "admin.kubeconfig"

// credentials are the authority of a stack and the files that are made with it.
type credentials struct {
	dir       *directory
	server    string
	authority *pki.Authority
}

// newCredentials makes the authority of an API server.
func newCredentials(dir *directory, server string) (*credentials, error) {
	authority, err := pki.NewAuthority("stack")
	if err != nil {
		return nil, err
	}
	c := &credentials{dir: dir, server: server, authority: authority}
	return c, c.write("ca", authority.KeyPair)
}

// issue writes NAME.crt and NAME.key for a server, or for a client that presents itself without a kubeconfig.
func (c *credentials) issue(name, user string, hosts ...string) error {
	pair, err := c.authority.Issue(user, nil, hosts...)
	if err != nil {
		return err
	}
	return c.write(name, pair)
}

// kubeconfig writes NAME.kubeconfig, complete in itself, for a user, and returns its path.
func (c *credentials) kubeconfig(name, namespace, user string, groups ...string) (string, error) {
	pair, err := c.authority.Issue(user, groups)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(name, namespace, &clientcmdapi.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key})
}

// tokenKubeconfig writes NAME.kubeconfig, complete in itself, for the bearer of a token, and returns its path.
func (c *credentials) tokenKubeconfig(name, namespace, token string) (string, error) {
	return c.writeKubeconfig(name, namespace, &clientcmdapi.AuthInfo{Token: token})
}

func (c *credentials) writeKubeconfig(name, namespace string, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["stack"] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthorityData: c.authority.Cert}
	config.AuthInfos[name] = user
	config.Contexts["stack"] = &clientcmdapi.Context{Cluster: "stack", AuthInfo: name, Namespace: namespace}
	config.CurrentContext = "stack"
	path := c.dir.file(name + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}

func (c *credentials) write(name string, pair pki.KeyPair) error {
	if err := os.WriteFile(c.dir.file(name+".crt"), pair.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.dir.file(name+".key"), pair.Key, 0o600)
}
