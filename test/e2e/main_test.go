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

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// root is the repository.
const root = "../.."

// shared is all that outlives a test.
var shared = newEnvironment()

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.tearDown(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// environment is the server's program and the stacks. What no test asks for is not made.
type environment struct {
	server *program
	real   *sharedStack
	quiet  *sharedStack
}

func newEnvironment() *environment {
	server := &program{}
	server.build = sync.OnceValues(server.compile)
	return &environment{
		server: server,
		real: &sharedStack{
			server:  server,
			options: stack.Options{Load: []string{filepath.Join(root, "artifacts", "samples", "stack")}},
			prepare: addRules,
		},
		quiet: &sharedStack{server: server, options: stack.Options{KindsOnly: true}},
	}
}

func (e *environment) tearDown(failed bool) error {
	return errors.Join(e.real.tearDown(failed), e.quiet.tearDown(failed), e.server.remove())
}

// program is the server under test, built with the race detector.
type program struct {
	build func() (path string, err error)
	dir   string
}

func (p *program) compile() (string, error) {
	var err error
	if p.dir, err = os.MkdirTemp("", "e2e-"); err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(p.dir, "workerimage-apiserver"))
	if err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "Building the server with the race detector. With empty caches this takes some minutes.")
	build := exec.CommandContext(context.Background(), "go", "build", "-race", "-o", path, "./cmd/workerimage-apiserver")
	build.Dir, build.Stderr = root, os.Stderr
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
	if options.Manifests == "" {
		options.Manifests = filepath.Join(root, "artifacts", "deploy")
	}
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
	server  *program
	options stack.Options
	// prepare is called once the stack runs.
	prepare func(*stack.Stack) error

	once    sync.Once
	running *stack.Stack
	err     error
}

func (s *sharedStack) get(t *testing.T) *stack.Stack {
	t.Helper()
	s.once.Do(func() { s.running, s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.running
}

func (s *sharedStack) start() (*stack.Stack, error) {
	running, err := s.server.start(s.options)
	if err != nil || s.prepare == nil {
		return running, err
	}
	return running, s.prepare(running)
}

// startStack runs a stack for a single test.
func startStack(t *testing.T, options stack.Options) *stack.Stack {
	t.Helper()
	running, err := shared.server.start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopStack(running, t.Failed()); err != nil {
			t.Error(err)
		}
	})
	return running
}

// addRules orders the imports that tests need besides those that every stack knows.
func addRules(s *stack.Stack) error {
	rules, err := nodesim.ReadRules(s.State().SimRules)
	if err != nil {
		return err
	}
	rules.Rules = append(simRules(), rules.Rules...)
	return s.SetSimRules(rules)
}

func (s *sharedStack) tearDown(failed bool) error {
	if s.running == nil {
		return nil
	}
	return stopStack(s.running, failed)
}

// shownLog is how much of the server's log is shown when a test has failed.
const shownLog = 4 << 10

// stopStack ends a stack and returns what is wrong with the server's log.
func stopStack(s *stack.Stack, failed bool) error {
	log, err := s.ServerLog()
	if failed {
		fmt.Fprintf(os.Stderr, "The end of the server's log:\n%s\n", log[max(0, len(log)-shownLog):])
	}
	return errors.Join(err, faults(log), s.Stop())
}

// fault matches the first line of what no log of the server may hold. It is everybody's who reads logs, so no tenant is
// named in it.
var fault = regexp.MustCompile(`(?i)WARNING: DATA RACE|panic|forbidden|tenant-[abc]`)

// actor is who had the server write, whom its log names.
var actor = regexp.MustCompile(` user="[^"]*"`)

// faultLines are shown of each fault.
const faultLines = 60

// faults returns an error that shows each different fault of a log once.
func faults(log string) error {
	var errs []error
	seen := sets.New[string]()
	lines := strings.Split(log, "\n")
	for i, line := range lines {
		line = actor.ReplaceAllString(line, "")
		if !fault.MatchString(line) {
			continue
		}
		excerpt := strings.Join(lines[i:min(len(lines), i+faultLines)], "\n")
		if kind := strings.ToLower(fault.FindString(line)); !seen.Has(kind) {
			seen.Insert(kind)
			errs = append(errs, fmt.Errorf("the server's log holds a fault:\n%s", excerpt))
		}
	}
	return errors.Join(errs...)
}
