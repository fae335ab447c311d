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
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

const (
	// ServerName is the name of the server's process, service account and Service. Of several replicas, each process has
	// its number besides.
	ServerName = "workerimage-apiserver"
	// MaxReplicas is how many replicas a stack has room for.
	MaxReplicas = 5

	serverNamespace = "cozy-system"

	servedGroup   = "images.cozystack.io"
	servedVersion = "v1alpha1"
)

// ServerOptions say how to run the server under development.
type ServerOptions struct {
	// Path is the program.
	Path string
	// Args are given to it besides those that connect it to the stack.
	Args []string
	// RBAC is a file or directory of manifests with all the permissions it gets.
	RBAC string
	// Replicas is how many run. If they are more than one, connections are spread over them; zero is one.
	Replicas int
}

// startServer runs the server as its own service account, and has kube-apiserver pass its group on to it.
func (c *Cluster) startServer(ctx context.Context) error {
	if c.options.Server.RBAC == "" {
		return errors.New("the server needs the manifests of its permissions")
	}
	if c.Replicas() > MaxReplicas {
		return fmt.Errorf("a stack has room for %d replicas", MaxReplicas)
	}
	permissions, err := readManifests(c.options.Server.RBAC)
	if err != nil {
		return err
	}
	if err := c.applier.apply(ctx, permissions...); err != nil {
		return err
	}
	kubeconfig, err := c.credentials.kubeconfig(ServerName, serverNamespace, serviceAccountUser(serverNamespace, ServerName), serviceAccountGroups(serverNamespace)...)
	if err != nil {
		return err
	}
	if err := c.credentials.issue(ServerName, ServerName, fmt.Sprintf("%s.%s.svc", ServerName, serverNamespace)); err != nil {
		return err
	}
	for i := range c.Replicas() {
		if err := c.processes.Start(process.Spec{Name: c.Replica(i), Path: c.options.Server.Path, Args: c.serverArgs(i, kubeconfig)}); err != nil {
			return err
		}
	}
	if err := c.startBalancer(ctx); err != nil {
		return err
	}
	return c.register(ctx)
}

func (c *Cluster) serverArgs(replica int, kubeconfig string) []string {
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		fmt.Sprintf("--secure-port=%d", c.slot.port(c.replicaPort(replica))),
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + c.dir.file(ServerName+".crt"),
		"--tls-private-key-file=" + c.dir.file(ServerName+".key"),
		"--v=1",
	}, c.options.Server.Args...)
}

// register has kube-apiserver pass requests for the group on to the process.
func (c *Cluster) register(ctx context.Context) error {
	// Endpoints refuse loopback addresses; a name is not looked at.
	service := object("v1", "Service", serverNamespace, ServerName, map[string]any{
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	})
	apiService := object("apiregistration.k8s.io/v1", "APIService", "", servedVersion+"."+servedGroup, map[string]any{
		"spec": map[string]any{
			"group":                servedGroup,
			"version":              servedVersion,
			"groupPriorityMinimum": int64(1000),
			"versionPriority":      int64(15),
			"service":              map[string]any{"namespace": serverNamespace, "name": ServerName, "port": int64(c.slot.port(serverPort))},
			"caBundle":             base64.StdEncoding.EncodeToString(c.credentials.authority.Cert),
		},
	})
	if err := c.awaitServer(ctx); err != nil {
		return err
	}
	if err := c.applier.apply(ctx, service, apiService); err != nil {
		return err
	}
	return c.awaitCondition(ctx, apiService, "Available")
}

func (c *Cluster) awaitServer(ctx context.Context) error {
	for i := range c.Replicas() {
		if err := c.AwaitReplica(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// configFor is anonymous access to another server of the stack.
func (c *Cluster) configFor(port int) *rest.Config {
	return &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", c.slot.port(port)),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.authority.Cert},
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &schema.GroupVersion{},
			NegotiatedSerializer: serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs},
		},
	}
}

func serviceAccountUser(namespace, name string) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name)
}

func serviceAccountGroups(namespace string) []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
}
