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

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cozystack/workerimage-apiserver/hack/stack/binaries"
	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

// Rules order what the simulated node and storage do.
type Rules = nodesim.Rules

// Rule orders what becomes of the pods it matches.
type Rule = nodesim.Rule

// kubernetesVariable names the minor of the control plane, such as 1.36. Without it stacks have the default.
const kubernetesVariable = "STACK_KUBERNETES"

// Options say what a stack runs besides Kubernetes and CDI.
type Options struct {
	// KindsOnly leaves out everything that acts on objects, and the objects that it would act on: only the API
	// server runs, and serves the kinds.
	KindsOnly bool
	// Images are programs that the node runs in place of the containers of these images.
	Images map[string]string
	// Server is the program of the server under test; empty means none.
	Server string
	// ServerArgs are given to it after those of its Deployment and those that connect it to the stack.
	ServerArgs []string
	// Replicas is how many servers run behind the APIService; zero is one.
	Replicas int
	// OneHistory has the replicas serve one history. It takes a Server to start the stack.
	OneHistory bool
	// Manifests is a directory with what the server is installed with, all the permissions it gets among it.
	Manifests string
	// Load lists files and directories of manifests to apply.
	Load []string
	// Fault returns what must not happen of which a line of the server's log tells; nothing if it tells of none.
	Fault func(line string) string
	// Check returns what is wrong with the stack when it ends; nil looks at nothing.
	Check func(*Stack) error
}

// Stack is a stack that runs. It ends when Stop is called, and with the test binary whatever happens.
type Stack struct {
	*cluster.Cluster
	// Dir is where its files are.
	Dir     string
	dynamic dynamic.Interface
	fault   func(line string) string
	check   func(*Stack) error
}

// Start builds what is missing, starts a stack and returns when it is ready.
func Start(ctx context.Context, o Options) (*Stack, error) {
	report := progress.NewReporter(os.Stderr)
	source, err := binaries.FindSource()
	if err != nil {
		return nil, err
	}
	set, err := binaries.Ensure(ctx, binaries.Options{Source: source, Kubernetes: os.Getenv(kubernetesVariable), Progress: report})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "stack-")
	if err != nil {
		return nil, err
	}
	running, err := cluster.Start(ctx, cluster.Options{
		Dir:       dir,
		Binaries:  set,
		KindsOnly: o.KindsOnly,
		Images:    o.Images,
		Load:      o.Load,
		Server:    cluster.ServerOptions{Path: o.Server, Args: o.ServerArgs, Manifests: o.Manifests, Replicas: o.Replicas},
		Progress:  report,
	})
	if err != nil {
		return nil, fmt.Errorf("start the stack in %s: %w", dir, err)
	}
	client, err := dynamic.NewForConfig(running.RESTConfig())
	if err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return &Stack{Cluster: running, Dir: dir, dynamic: client, fault: o.Fault, check: o.Check}, nil
}

// Stop ends the stack, waits until its processes are gone and removes its files. It fails if a part of the stack had
// ended before.
func (s *Stack) Stop() error {
	failure := s.Err()
	return errors.Join(failure, s.Cluster.Stop(), os.RemoveAll(s.Dir))
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (s *Stack) Kubeconfig() string {
	return s.State().Kubeconfig
}

// UserConfig is the access of a tenant: tenant-a, tenant-b or tenant-c.
func (s *Stack) UserConfig(tenant string) (*rest.Config, error) {
	path, ok := s.State().Kubeconfigs[tenant]
	if !ok {
		return nil, fmt.Errorf("no tenant %s", tenant)
	}
	return clientcmd.BuildConfigFromFlags("", path)
}

// Kubectl is the path of kubectl.
func (s *Stack) Kubectl() string {
	return s.State().Kubectl
}

// ServerLog is what the server has written so far, or all of its replicas one after the other.
func (s *Stack) ServerLog() (string, error) {
	var all []byte
	for i := range s.Replicas() {
		content, err := os.ReadFile(filepath.Join(s.Dir, s.Replica(i)+".log"))
		if err != nil {
			return "", err
		}
		all = append(all, content...)
	}
	return string(all), nil
}

// Process returns the id of a process that runs: etcd, kube-apiserver, kube-controller-manager, cdi-apiserver,
// cdi-controller or workerimage-apiserver. Processes() can kill, stop and start them by these names.
func (s *Stack) Process(name string) (pid int, ok bool) {
	status, ok := s.Processes().Running()[name]
	return status.PID, ok
}
