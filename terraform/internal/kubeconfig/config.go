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
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config is what a user configures. What is empty is not configured.
type Config struct {
	Host                  string
	Token                 string
	Insecure              *bool
	TLSServerName         string
	ClientCertificate     string
	ClientKey             string
	ClusterCACertificate  string
	ConfigPath            string
	ConfigPaths           []string
	ConfigContext         string
	ConfigContextAuthInfo string
	ConfigContextCluster  string
	ProxyURL              string
	Exec                  *Exec
}

// Exec is a program that hands out credentials.
type Exec struct {
	APIVersion string
	Command    string
	Args       []string
	Env        map[string]string
}

// FieldError is a fault of one field.
type FieldError struct {
	// Field is the name of the field, with a dot before the name of a field within.
	Field string
	Err   error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %v", e.Field, e.Err)
}

func (e *FieldError) Unwrap() error { return e.Err }

func fieldError(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// REST returns access to the cluster, or all the faults that were found.
func (c Config) REST() (*rest.Config, []error) {
	files, faults := c.load()
	faults = append(faults, c.validate()...)
	if len(faults) > 0 {
		return nil, faults
	}
	config, err := c.connection(files)
	if err != nil {
		return nil, []error{err}
	}
	c.addExec(config)
	return config, nil
}

func (c Config) connection(files *clientcmdapi.Config) (*rest.Config, error) {
	if paths, _ := c.paths(); len(paths) == 0 && c.Host == "" {
		return c.inCluster()
	}
	return clientcmd.NewNonInteractiveClientConfig(*files, c.ConfigContext, c.overrides(), nil).ClientConfig()
}

// inCluster is the access of the pod, with what is configured on top.
func (c Config) inCluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, errors.New("nothing says which cluster to use: set config_path, or host and credentials, or run in a pod with a service account")
	}
	if c.Token != "" {
		config.BearerToken, config.BearerTokenFile = c.Token, ""
	}
	return config, nil
}

// overrides go before what the files say.
func (c Config) overrides() *clientcmd.ConfigOverrides {
	overrides := &clientcmd.ConfigOverrides{
		CurrentContext: c.ConfigContext,
		Context:        clientcmdapi.Context{AuthInfo: c.ConfigContextAuthInfo, Cluster: c.ConfigContextCluster},
		AuthInfo: clientcmdapi.AuthInfo{
			Token:                 c.Token,
			ClientCertificateData: []byte(c.ClientCertificate),
			ClientKeyData:         []byte(c.ClientKey),
		},
		ClusterInfo: clientcmdapi.Cluster{
			Server:                   serverURL(c.Host),
			TLSServerName:            c.TLSServerName,
			CertificateAuthorityData: []byte(c.ClusterCACertificate),
			ProxyURL:                 c.ProxyURL,
		},
	}
	if c.Insecure != nil {
		overrides.ClusterInfo.InsecureSkipTLSVerify = *c.Insecure
	}
	return overrides
}

// addExec puts the program in the place of all other credentials.
func (c Config) addExec(config *rest.Config) {
	if c.Exec == nil {
		return
	}
	provider := &clientcmdapi.ExecConfig{
		APIVersion:      c.Exec.APIVersion,
		Command:         c.Exec.Command,
		Args:            c.Exec.Args,
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	for _, name := range sortedKeys(c.Exec.Env) {
		provider.Env = append(provider.Env, clientcmdapi.ExecEnvVar{Name: name, Value: c.Exec.Env[name]})
	}
	config.ExecProvider = provider
	config.BearerToken, config.BearerTokenFile, config.Username, config.Password = "", "", "", ""
	config.TLSClientConfig.CertData, config.TLSClientConfig.CertFile = nil, ""
	config.TLSClientConfig.KeyData, config.TLSClientConfig.KeyFile = nil, ""
}
