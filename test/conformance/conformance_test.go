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

package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cozystack/workerimage-apiserver/pkg/cmd/server"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/conformance"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "cluster that is tested; empty for a server of the test's own on the sample snapshot")
	kubectl    = flag.String("kubectl", "kubectl", "program that explains the kinds, if there is one")
	namespace  = flag.String("namespace", "default", "namespace whose options are tested")
	watches    = flag.Int("watches", 0, "how many watches are open at once; 0 for 1,000")
)

func TestConformance(t *testing.T) {
	path := *kubeconfig
	if path == "" {
		path = serveSnapshot(t)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Config{
		REST:      config,
		Resources: []conformance.Resource{driven(t, config, conformance.WorkerImages()), conformance.CatalogEntries(), conformance.Options(*namespace)},
		Kubectl:   runner(path),
		Watches:   *watches,
	})
}

// driven is a resource with a driver, if it has an object.
func driven(t *testing.T, config *rest.Config, r conformance.Resource) conformance.Resource {
	t.Helper()
	var err error
	if r.Driver, err = conformance.LabelDriver(t.Context(), config, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// runner runs kubectl, and is nil if there is none.
func runner(kubeconfig string) func(context.Context, ...string) (string, error) {
	path, err := exec.LookPath(*kubectl)
	if err != nil {
		return nil
	}
	return func(ctx context.Context, args ...string) (string, error) {
		var said strings.Builder
		command := exec.CommandContext(ctx, path, append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
		command.Stdout, command.Stderr = &said, &said
		if err := command.Run(); err != nil {
			return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, said.String())
		}
		return said.String(), nil
	}
}

// serveSnapshot runs a server on the sample snapshot until the test ends, and returns its kubeconfig.
func serveSnapshot(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := server.NewCommand(ctx)
	command.SetArgs([]string{"--snapshot=" + filepath.Join("..", "..", "artifacts", "samples", "snapshot"), "--snapshot-kubeconfig=" + path})
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	await.For(t, "the server", func(ctx context.Context) error {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return path
}
