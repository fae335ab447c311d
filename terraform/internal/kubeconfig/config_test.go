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

package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig has two contexts, and none of them is a service account's.
func writeKubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for _, name := range []string{"blue", "green"} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name + ".example.org:6443"}
		config.AuthInfos[name+"-admin"] = &clientcmdapi.AuthInfo{Token: "token-of-" + name}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name + "-admin"}
	}
	config.CurrentContext = "blue"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigurationLeadsToACluster(t *testing.T) {
	path := writeKubeconfig(t)
	certificate, key := keyPair(t)
	insecure := true
	for name, test := range map[string]struct {
		config Config
		check  func(*rest.Config) (got, want any)
	}{
		"the current context of a file": {Config{ConfigPath: path},
			func(c *rest.Config) (any, any) {
				return c.Host + c.BearerToken, "https://blue.example.org:6443token-of-blue"
			}},
		"one of several files": {Config{ConfigPaths: []string{path, writeKubeconfig(t)}},
			func(c *rest.Config) (any, any) { return c.Host, "https://blue.example.org:6443" }},
		"another context": {Config{ConfigPath: path, ConfigContext: "green"},
			func(c *rest.Config) (any, any) { return c.Host, "https://green.example.org:6443" }},
		"another user and cluster": {Config{ConfigPath: path, ConfigContextCluster: "green", ConfigContextAuthInfo: "blue-admin"},
			func(c *rest.Config) (any, any) {
				return c.Host + c.BearerToken, "https://green.example.org:6443token-of-blue"
			}},
		"a host and a token go before the file": {Config{ConfigPath: path, Host: "https://other.example.org", Token: "mine"},
			func(c *rest.Config) (any, any) { return c.Host + " " + c.BearerToken, "https://other.example.org mine" }},
		"a host without a scheme has TLS": {Config{Host: "10.0.0.1:6443"},
			func(c *rest.Config) (any, any) { return c.Host, "https://10.0.0.1:6443" }},
		"certificates": {Config{Host: "https://a.example.org", ClientCertificate: certificate, ClientKey: key, ClusterCACertificate: certificate, TLSServerName: "b"},
			func(c *rest.Config) (any, any) {
				return []string{string(c.CertData), string(c.KeyData), string(c.CAData), c.ServerName}, []string{certificate, key, certificate, "b"}
			}},
		"no verification": {Config{Host: "https://a.example.org", Insecure: &insecure},
			func(c *rest.Config) (any, any) { return c.Insecure, true }},
		"a program takes the place of the file's token": {Config{ConfigPath: path, Exec: &Exec{
			APIVersion: "client.authentication.k8s.io/v1", Command: "oidc", Args: []string{"login"}, Env: map[string]string{"B": "2", "A": "1"}}},
			func(c *rest.Config) (any, any) {
				return c.BearerToken + c.ExecProvider.Command + c.ExecProvider.Args[0] + c.ExecProvider.Env[0].Name, "oidcloginA"
			}},
	} {
		t.Run(name, func(t *testing.T) {
			config, faults := test.config.REST()
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got, want := test.check(config)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAProxyIsUsed(t *testing.T) {
	config, faults := Config{Host: "https://a.example.org", ProxyURL: "http://proxy.example.org:3128"}.REST()
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	proxy, err := config.Proxy(nil)
	if err != nil || proxy.Host != "proxy.example.org:3128" {
		t.Errorf("got %v, %v", proxy, err)
	}
}

func TestAFaultNamesItsField(t *testing.T) {
	path := writeKubeconfig(t)
	certificate, key := keyPair(t)
	_, otherKey := keyPair(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	insecure := true
	const host = "https://a.example.org"
	for name, test := range map[string]struct {
		config Config
		field  string
		says   string
	}{
		"a file that is not there":         {Config{ConfigPath: "/no/such/file"}, "config_path", "there is no file /no/such/file"},
		"one of several that is not there": {Config{ConfigPaths: []string{path, "/no/such/file"}}, "config_paths", "there is no file /no/such/file"},
		"a file that is no kubeconfig":     {Config{ConfigPath: broken}, "config_path", "cannot be used"},
		"one file and several":             {Config{ConfigPath: path, ConfigPaths: []string{path}}, "config_paths", "config_path is set too"},
		"a context that the file lacks":    {Config{ConfigPath: path, ConfigContext: "red"}, "config_context", `it has "blue", "green"`},
		"a cluster that the file lacks":    {Config{ConfigPath: path, ConfigContextCluster: "red"}, "config_context_cluster", `it has "blue", "green"`},
		"a user that the file lacks":       {Config{ConfigPath: path, ConfigContextAuthInfo: "red"}, "config_context_auth_info", `it has "blue-admin", "green-admin"`},
		"a context without a file":         {Config{Host: host, ConfigContext: "blue"}, "config_context", "set config_path"},
		"a host that is no URL":            {Config{Host: "ftp://a"}, "host", `"ftp://a"`},
		"a proxy that is no URL":           {Config{Host: host, ProxyURL: "proxy"}, "proxy_url", `"proxy"`},
		"an authority that is a path":      {Config{Host: host, ClusterCACertificate: "/etc/ca.crt"}, "cluster_ca_certificate", "use file("},
		"an authority that is not asked":   {Config{Host: host, ClusterCACertificate: certificate, Insecure: &insecure}, "cluster_ca_certificate", "insecure is set too"},
		"a certificate without its key":    {Config{Host: host, ClientCertificate: certificate}, "client_key", "needs its key"},
		"a key without its certificate":    {Config{Host: host, ClientKey: key}, "client_certificate", "needs its certificate"},
		"a key of another certificate":     {Config{Host: host, ClientCertificate: certificate, ClientKey: otherKey}, "client_certificate", "no pair"},
		"a program that is not named":      {Config{Host: host, Exec: &Exec{APIVersion: "client.authentication.k8s.io/v1"}}, "exec.command", "name the program"},
		"a program of an unknown version":  {Config{Host: host, Exec: &Exec{APIVersion: "v1", Command: "oidc"}}, "exec.api_version", `"v1" is none of`},
		"a program and a token":            {Config{Host: host, Token: "t", Exec: &Exec{APIVersion: "client.authentication.k8s.io/v1", Command: "oidc"}}, "exec", "one kind of credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := test.config.REST()
			if len(faults) != 1 {
				t.Fatalf("got %d faults: %v", len(faults), faults)
			}
			var fault *FieldError
			if !errors.As(faults[0], &fault) || fault.Field != test.field || !strings.Contains(fault.Error(), test.says) {
				t.Errorf("got %v", faults[0])
			}
		})
	}
}

func TestAllFaultsAreFoundAtOnce(t *testing.T) {
	if _, faults := (Config{Host: "ftp://a", ProxyURL: "proxy", ConfigPath: "/no/such/file"}).REST(); len(faults) != 3 {
		t.Errorf("got %v", faults)
	}
}

func TestNothingConfiguredIsAnErrorOutsideOfAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, faults := (Config{}).REST(); len(faults) != 1 || !strings.Contains(faults[0].Error(), "set config_path") {
		t.Errorf("got %v", faults)
	}
}

func TestTheEnvironmentFillsWhatIsNotConfigured(t *testing.T) {
	environment := map[string]string{
		"KUBE_HOST": "env-host", "KUBE_TOKEN": "env-token", "KUBE_INSECURE": "true", "KUBE_TLS_SERVER_NAME": "env-name",
		"KUBE_CLIENT_CERT_DATA": "env-certificate", "KUBE_CLIENT_KEY_DATA": "env-key", "KUBE_CLUSTER_CA_CERT_DATA": "env-authority",
		"KUBE_CONFIG_PATH": "env-path", "KUBE_CTX": "env-context", "KUBE_CTX_AUTH_INFO": "env-user", "KUBE_CTX_CLUSTER": "env-cluster",
		"KUBE_PROXY_URL": "env-proxy",
	}
	insecure := true
	fromEnvironment := Config{
		Host: "env-host", Token: "env-token", Insecure: &insecure, TLSServerName: "env-name",
		ClientCertificate: "env-certificate", ClientKey: "env-key", ClusterCACertificate: "env-authority",
		ConfigPath: "env-path", ConfigContext: "env-context", ConfigContextAuthInfo: "env-user", ConfigContextCluster: "env-cluster",
		ProxyURL: "env-proxy",
	}
	configured := fromEnvironment
	configured.Host, configured.ConfigPath, configured.ConfigPaths = "mine", "", []string{"mine"}
	configured.Token, configured.ClientCertificate, configured.ClientKey = "mine", "", ""
	for name, test := range map[string]struct{ config, want Config }{
		"everything": {Config{}, fromEnvironment},
		"but for what is configured, and one kind of credentials and files at a time": {
			Config{Host: "mine", Token: "mine", ConfigPaths: []string{"mine"}}, configured},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.config.WithEnvironment(func(name string) string { return environment[name] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSeveralFilesInTheEnvironmentGoBeforeOne(t *testing.T) {
	environment := map[string]string{"KUBE_CONFIG_PATHS": "a" + string(filepath.ListSeparator) + "b", "KUBE_CONFIG_PATH": "c"}
	got, err := Config{}.WithEnvironment(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Config{ConfigPaths: []string{"a", "b"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnEnvironmentThatCannotBeReadNamesItsVariable(t *testing.T) {
	_, err := Config{}.WithEnvironment(func(name string) string { return map[string]string{"KUBE_INSECURE": "perhaps"}[name] })
	if err == nil || !strings.Contains(err.Error(), "KUBE_INSECURE") {
		t.Errorf("got %v", err)
	}
}

// keyPair is a certificate and its key, in PEM.
func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}
