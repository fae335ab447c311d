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
	"path/filepath"
	"strconv"
)

// WithEnvironment fills what is not configured from the environment. Files that are named in the environment count only
// where no file is configured.
func (c Config) WithEnvironment(getenv func(string) string) (Config, error) {
	for _, variable := range []struct {
		name  string
		value *string
	}{
		{"KUBE_HOST", &c.Host},
		{"KUBE_TLS_SERVER_NAME", &c.TLSServerName},
		{"KUBE_CLUSTER_CA_CERT_DATA", &c.ClusterCACertificate},
		{"KUBE_CTX", &c.ConfigContext},
		{"KUBE_CTX_AUTH_INFO", &c.ConfigContextAuthInfo},
		{"KUBE_CTX_CLUSTER", &c.ConfigContextCluster},
		{"KUBE_PROXY_URL", &c.ProxyURL},
	} {
		if *variable.value == "" {
			*variable.value = getenv(variable.name)
		}
	}
	c.addCredentials(getenv)
	if c.ConfigPath == "" && len(c.ConfigPaths) == 0 {
		if paths := filepath.SplitList(getenv("KUBE_CONFIG_PATHS")); len(paths) > 0 {
			c.ConfigPaths = paths
		} else {
			c.ConfigPath = getenv("KUBE_CONFIG_PATH")
		}
	}
	if text := getenv("KUBE_INSECURE"); c.Insecure == nil && text != "" {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			return c, fieldError("insecure", "the environment variable KUBE_INSECURE is %q, neither true nor false", text)
		}
		c.Insecure = &insecure
	}
	return c, nil
}

// addCredentials takes credentials from the environment where none are configured, so that two kinds do not meet.
func (c *Config) addCredentials(getenv func(string) string) {
	if c.Exec != nil || c.Token != "" || c.ClientCertificate != "" || c.ClientKey != "" {
		return
	}
	c.Token = getenv("KUBE_TOKEN")
	c.ClientCertificate = getenv("KUBE_CLIENT_CERT_DATA")
	c.ClientKey = getenv("KUBE_CLIENT_KEY_DATA")
}
