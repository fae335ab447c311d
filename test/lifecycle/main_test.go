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

package lifecycle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// root is the repository.
const root = "../.."

var from = flag.String("from", "", "tree of the repository that upgrades begin with; empty for the one that is tested, with another version")

// shared is all that outlives a test.
var shared = newEnvironment()

func TestMain(m *testing.M) {
	// That a watch has ended is no news to its client, which begins another.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	flag.Parse()
	code := m.Run()
	if err := shared.tearDown(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// version is one that can be installed.
type version struct {
	// name is what the program says of itself.
	name string
	// tree is the repository that it is built from.
	tree string
}

func (v version) image() string { return "registry.example.org/" + cluster.ServerName + ":" + v.name }
func (v version) chart() string { return filepath.Join(v.tree, "artifacts", "chart") }

// The version that upgrades begin with, and the one that they lead to.
func oldVersion() version {
	if *from != "" {
		return version{name: "v0.1.0-from", tree: *from}
	}
	return version{name: "v0.1.0-old", tree: root}
}

func newVersion() version { return version{name: "v0.1.0-new", tree: root} }

// shippedImage is that of artifacts/deploy.
const shippedImage = "ghcr.io/cozystack/workerimage-apiserver:v0.1.0"

// environment is the programs and the stack.
type environment struct {
	start   func() (*stack.Stack, error)
	running *stack.Stack
	dir     string
}

func newEnvironment() *environment {
	e := &environment{}
	e.start = sync.OnceValues(e.startStack)
	return e
}

func (e *environment) startStack() (*stack.Stack, error) {
	var err error
	if e.dir, err = os.MkdirTemp("", "lifecycle-"); err != nil {
		return nil, err
	}
	programs := map[string]string{}
	for _, v := range []version{oldVersion(), newVersion()} {
		if programs[v.image()], err = e.compile(v); err != nil {
			return nil, err
		}
	}
	programs[shippedImage] = programs[newVersion().image()]
	samples := filepath.Join(root, "artifacts", "samples", "stack")
	e.running, err = stack.Start(context.Background(), stack.Options{
		Images: programs,
		Load: []string{
			filepath.Join(samples, "goldens.yaml"),
			filepath.Join(samples, "pools-tenant-a.yaml"),
			filepath.Join(samples, "pools-tenant-b.yaml"),
			filepath.Join(samples, "pools-tenant-c.yaml"),
			filepath.Join(samples, "worker-disks.yaml"),
		},
	})
	return e.running, err
}

// compile builds a version as it is shipped.
func (e *environment) compile(v version) (string, error) {
	path := filepath.Join(e.dir, v.name)
	stamp := "-X k8s.io/component-base/version.gitVersion=" + v.name
	return path, stack.Build(context.Background(), v.tree, "./cmd/workerimage-apiserver", path, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", stamp)
}

func (e *environment) tearDown(failed bool) error {
	if e.dir == "" {
		return nil
	}
	errs := []error{os.RemoveAll(e.dir)}
	if e.running != nil {
		logs, err := readLogs(e.running)
		if failed {
			showLogs(logs)
		}
		errs = append(errs, err, faults(logs, broken), e.running.Stop())
	}
	return errors.Join(errs...)
}
