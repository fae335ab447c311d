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

package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cozystack/workerimage-apiserver/hack/stack/binaries"
	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// root is the repository.
const root = "../.."

// shared is the platform of all tests. It starts with the first that asks for it.
var shared = &environment{server: stack.NewServer()}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.tearDown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// environment is a platform and the programs that are tested on it.
type environment struct {
	server   *stack.Server
	once     sync.Once
	platform *platform
	err      error
	programs string
}

// platform is a stack, seen by its administrator.
type platform struct {
	*stack.Stack
	images imagesclient.WorkerImageInterface
	// tofu is the path of OpenTofu, and config what tells it where the provider is.
	tofu, config string
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	shared.once.Do(func() { shared.platform, shared.err = shared.start(context.Background()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.platform
}

func (e *environment) start(ctx context.Context) (*platform, error) {
	var err error
	if e.programs, err = os.MkdirTemp("", "terraform-"); err != nil {
		return nil, err
	}
	provider := filepath.Join(e.programs, "terraform-provider-workerimage")
	if err := stack.Build(ctx, filepath.Join(root, "terraform"), "./cmd/terraform-provider-workerimage", provider, nil); err != nil {
		return nil, err
	}
	p := &platform{}
	if p.tofu, err = findOpenTofu(ctx); err != nil {
		return nil, err
	}
	if p.config, err = e.writeConfig(); err != nil {
		return nil, err
	}
	p.Stack, err = e.server.Start(ctx, stack.Options{Load: []string{filepath.Join(root, "artifacts", "samples", "stack")}})
	if err != nil {
		return nil, err
	}
	clients, err := versioned.NewForConfig(p.RESTConfig())
	if err != nil {
		return p, err
	}
	p.images = clients.ImagesV1alpha1().WorkerImages()
	if err := p.declare(ctx, "tofu-life", "tofu-again", "slow-tofu", "steady-tofu", "steady-restart"); err != nil {
		return p, err
	}
	return p, p.addRules()
}

// declare adds images to the catalog of the samples.
func (p *platform) declare(ctx context.Context, schematics ...string) error {
	kube, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		return err
	}
	const key = "catalog.yaml"
	catalogs := kube.CoreV1().ConfigMaps(objects.Goldens)
	catalog, err := catalogs.Get(ctx, "worker-image-catalog", metav1.GetOptions{})
	if err != nil {
		return err
	}
	entries := "images:\n"
	for _, schematic := range schematics {
		entries += fmt.Sprintf("- {schematicID: %s, version: %s}\n", schematic, objects.Release)
	}
	catalog.Data[key] = strings.Replace(catalog.Data[key], "images:\n", entries, 1)
	_, err = catalogs.Update(ctx, catalog, metav1.UpdateOptions{})
	return err
}

// addRules lets images be imported slowly enough for a test to act meanwhile.
func (p *platform) addRules() error {
	rules, err := nodesim.ReadRules(p.State().SimRules)
	if err != nil {
		return err
	}
	rules.Rules = append([]stack.Rule{
		{Match: "/image/steady-", Duration: metav1.Duration{Duration: 10 * time.Second}},
	}, rules.Rules...)
	return p.SetSimRules(rules)
}

func findOpenTofu(ctx context.Context) (string, error) {
	source, err := binaries.FindSource()
	if err != nil {
		return "", err
	}
	return binaries.EnsureOpenTofu(ctx, binaries.Options{Source: source, Progress: progress.NewReporter(os.Stderr)})
}

// writeConfig makes OpenTofu take the provider that was built, whatever the registry has.
func (e *environment) writeConfig() (string, error) {
	path := filepath.Join(e.programs, "tofu.rc")
	content := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"cozystack/workerimage\" = %q\n  }\n}\n", e.programs)
	return path, os.WriteFile(path, []byte(content), 0o600)
}

func (e *environment) tearDown() error {
	var failure error
	if e.platform != nil && e.platform.Stack != nil {
		failure = e.platform.Stop()
	}
	return errors.Join(failure, e.server.Remove(), os.RemoveAll(e.programs))
}
