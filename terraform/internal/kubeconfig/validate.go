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
	"crypto/tls"
	"errors"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/util/cert"
)

// validate checks the values that can be checked without a file.
func (c Config) validate() []error {
	var faults []error
	for _, check := range []func() error{
		c.checkPaths,
		c.checkHost,
		c.checkProxy,
		c.checkAuthority,
		c.checkClientCertificate,
		c.checkExec,
		c.checkExecVersion,
	} {
		if err := check(); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

func (c Config) checkPaths() error {
	if c.ConfigPath != "" && len(c.ConfigPaths) > 0 {
		return fieldError("config_paths", "config_path is set too: set one of them")
	}
	return nil
}

func (c Config) checkHost() error {
	if c.Host == "" {
		return nil
	}
	return checkURL("host", serverURL(c.Host), "http", "https")
}

func (c Config) checkProxy() error {
	if c.ProxyURL == "" {
		return nil
	}
	return checkURL("proxy_url", c.ProxyURL, "http", "https", "socks5")
}

func checkURL(field, text string, schemes ...string) error {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || !slices.Contains(schemes, parsed.Scheme) {
		return fieldError(field, "%q is no URL with a host and one of the schemes %s", text, strings.Join(schemes, ", "))
	}
	return nil
}

func (c Config) checkAuthority() error {
	if c.ClusterCACertificate == "" {
		return nil
	}
	if c.Insecure != nil && *c.Insecure {
		return fieldError("cluster_ca_certificate", "insecure is set too: the certificate would not be looked at")
	}
	if _, err := cert.ParseCertsPEM([]byte(c.ClusterCACertificate)); err != nil {
		return fieldError("cluster_ca_certificate", "this is no certificate in PEM, for a file use file(\"...\"): %w", err)
	}
	return nil
}

func (c Config) checkClientCertificate() error {
	switch {
	case c.ClientCertificate == "" && c.ClientKey == "":
		return nil
	case c.ClientKey == "":
		return fieldError("client_key", "client_certificate needs its key")
	case c.ClientCertificate == "":
		return fieldError("client_certificate", "client_key needs its certificate")
	}
	if _, err := tls.X509KeyPair([]byte(c.ClientCertificate), []byte(c.ClientKey)); err != nil {
		return fieldError("client_certificate", "certificate and key are no pair in PEM: %w", err)
	}
	return nil
}

func (c Config) checkExec() error {
	switch {
	case c.Exec == nil:
		return nil
	case c.Exec.Command == "":
		return fieldError("exec.command", "name the program that hands out credentials")
	case c.Token != "" || c.ClientCertificate != "":
		return &FieldError{Field: "exec", Err: errors.New("a token or a client certificate is set too: set one kind of credentials")}
	}
	return nil
}

func (c Config) checkExecVersion() error {
	known := []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}
	if c.Exec == nil || slices.Contains(known, c.Exec.APIVersion) {
		return nil
	}
	return fieldError("exec.api_version", "%q is none of %s", c.Exec.APIVersion, strings.Join(known, ", "))
}

// serverURL takes an address without a scheme for one of a server with TLS.
func serverURL(host string) string {
	if host == "" || strings.Contains(host, "://") {
		return host
	}
	return "https://" + host
}
