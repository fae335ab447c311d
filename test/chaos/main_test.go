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

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// root is the repository.
const root = "../.."

var reportPath = flag.String("report", "", "file for a table of what was measured")

// shared is all that outlives a test.
var shared = newEnvironment()

func TestMain(m *testing.M) {
	code := m.Run()
	err := errors.Join(shared.tearDown(code != 0), shared.figures.write(*reportPath))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// environment is the server's program, the stacks and the figures. What no test asks for is not made.
type environment struct {
	server           *program
	single, replicas *sharedStack
	figures          *figures
}

func newEnvironment() *environment {
	server := &program{}
	server.build = sync.OnceValues(server.compile)
	start := func(replicas int) *sharedStack {
		return &sharedStack{start: sync.OnceValues(func() (*stack.Stack, error) {
			return server.start(stack.Options{KindsOnly: true, Replicas: replicas})
		})}
	}
	return &environment{server: server, single: start(1), replicas: start(3), figures: &figures{}}
}

func (e *environment) tearDown(failed bool) error {
	return errors.Join(e.single.tearDown(failed), e.replicas.tearDown(failed), e.server.remove())
}

// program is the server under test. It is built as it is shipped: times and memory are measured.
type program struct {
	build func() (path string, err error)
	dir   string
}

func (p *program) compile() (string, error) {
	var err error
	if p.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(p.dir, "workerimage-apiserver"))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", path, "./cmd/workerimage-apiserver")
	build.Dir, build.Stderr, build.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the server: %w", err)
	}
	return path, nil
}

// start runs a stack with the server.
func (p *program) start(options stack.Options) (*stack.Stack, error) {
	var err error
	if options.Server, err = p.build(); err != nil {
		return nil, err
	}
	options.Manifests = filepath.Join(root, "artifacts", "deploy")
	return stack.Start(context.Background(), options)
}

func (p *program) remove() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// sharedStack is a stack that starts with the first test that asks for it and ends with the last.
type sharedStack struct {
	start   func() (*stack.Stack, error)
	running *stack.Stack
}

func (s *sharedStack) get(t *testing.T) *stack.Stack {
	t.Helper()
	running, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	s.running = running
	return running
}

// fault matches what no log of the server may hold, whatever is broken.
var fault = regexp.MustCompile(`(?i)panic|fatal error|unexpected fault`)

// shownLog is how much of the server's log is shown when a test has failed.
const shownLog = 4 << 10

func (s *sharedStack) tearDown(failed bool) error {
	if s.running == nil {
		return nil
	}
	log, err := s.running.ServerLog()
	if failed {
		fmt.Fprintf(os.Stderr, "The end of the server's log:\n%s\n", log[max(0, len(log)-shownLog):])
	}
	errs := []error{err}
	for line := range strings.Lines(log) {
		if fault.MatchString(line) {
			errs = append(errs, fmt.Errorf("the server's log holds a fault: %s", line))
			break
		}
	}
	return errors.Join(append(errs, s.running.Stop())...)
}
