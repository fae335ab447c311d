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
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

const (
	// ServerName is the name of the server's process, service account and Service. Of several replicas, each process has
	// its number besides.
	ServerName = "workerimage-apiserver"
	// ServerNamespace is where it is installed.
	ServerNamespace = "cozy-system"
	// MaxReplicas is how many replicas a stack has room for.
	MaxReplicas = 5

	// tokenSeconds is longer than any stack runs: nobody renews the token.
	tokenSeconds int64 = 30 * 24 * 60 * 60
)

// ServerOptions say how to run the server under development.
type ServerOptions struct {
	// Path is the program.
	Path string
	// Args are given to it after those of its Deployment and those that connect it to the stack.
	Args []string
	// Manifests is a directory with what it is installed with: its Deployment, and all the permissions it gets.
	Manifests string
	// Replicas is how many run. If they are more than one, connections are spread over them; zero is one.
	Replicas int
}

// startServer installs the server and runs it as its own service account, in place of a node. Only when it is ready does
// kube-apiserver pass its group on to it: a group that does not answer is in the way of all who look for kinds.
func (c *Cluster) startServer(ctx context.Context) error {
	if c.options.Server.Manifests == "" {
		return errors.New("the server needs the manifests that it is installed with")
	}
	if c.Replicas() > MaxReplicas {
		return fmt.Errorf("a stack has room for %d replicas", MaxReplicas)
	}
	objects, err := readManifests(c.options.Server.Manifests)
	if err != nil {
		return err
	}
	var entrance []*unstructured.Unstructured
	var shipped []string
	for _, object := range objects {
		switch object.GetKind() {
		case "Kustomization":
			continue
		case "Service", "APIService":
			entrance = append(entrance, object)
			continue
		case "Deployment":
			if shipped, err = argsOf(object); err != nil {
				return err
			}
		}
		if err := c.applier.apply(ctx, object); err != nil {
			return err
		}
	}
	kubeconfig, err := c.serverKubeconfig(ctx)
	if err != nil {
		return err
	}
	for i := range c.Replicas() {
		args := slices.Concat(shipped, c.serverArgs(i, kubeconfig))
		if err := c.processes.Start(process.Spec{Name: c.Replica(i), Path: c.options.Server.Path, Args: args}); err != nil {
			return err
		}
	}
	if err := c.startBalancer(ctx); err != nil {
		return err
	}
	if err := c.awaitAnyReplica(ctx); err != nil {
		return err
	}
	// Replicas find in the APIService how to trust one another.
	if err := c.register(ctx, entrance); err != nil {
		return err
	}
	return c.awaitServer(ctx)
}

// serverKubeconfig is the access of the server's service account, which a pod finds in its files.
func (c *Cluster) serverKubeconfig(ctx context.Context) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(tokenSeconds)}}
	token, err := c.client.CoreV1().ServiceAccounts(ServerNamespace).CreateToken(ctx, ServerName, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of %s/%s: %w", ServerNamespace, ServerName, err)
	}
	return c.credentials.tokenKubeconfig(ServerName, ServerNamespace, token.Status.Token)
}

// argsOf returns the arguments of the one container of a Deployment.
func argsOf(deployment *unstructured.Unstructured) ([]string, error) {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return nil, err
	}
	if len(containers) != 1 {
		return nil, fmt.Errorf("a Deployment with %d containers, and not one", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return nil, errors.New("a Deployment whose container is none")
	}
	args, _, err := unstructured.NestedStringSlice(container, "args")
	return args, err
}

// serverArgs connect the server to the stack. Nobody stands between the two who would have to learn that it is leaving.
func (c *Cluster) serverArgs(replica int, kubeconfig string) []string {
	args := append(connect(kubeconfig, "127.0.0.1"),
		fmt.Sprintf("--secure-port=%d", c.slot.port(c.replicaPort(replica))),
		"--shutdown-delay-duration=0s",
		fmt.Sprintf("--history-address=127.0.0.1:%d", c.slot.port(c.replicaPort(replica))))
	return append(args, c.options.Server.Args...)
}

// connect returns the arguments that tell an API server where it runs and as whom, if it does not run in a pod.
func connect(kubeconfig, address string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + address,
	}
}

// register has kube-apiserver pass requests for the group on to the process.
func (c *Cluster) register(ctx context.Context, entrance []*unstructured.Unstructured) error {
	for _, object := range entrance {
		switch object.GetKind() {
		case "Service":
			// Without pods there are no Endpoints, which refuse loopback addresses besides; a name is not looked at.
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "APIService":
			port := int64(c.slot.port(serverPort))
			if err := unstructured.SetNestedField(object.Object, port, "spec", "service", "port"); err != nil {
				return err
			}
		}
		if err := c.applier.apply(ctx, object); err != nil {
			return err
		}
	}
	for _, object := range entrance {
		if object.GetKind() == "APIService" {
			if err := c.awaitCondition(ctx, object, "Available"); err != nil {
				return err
			}
		}
	}
	return nil
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
