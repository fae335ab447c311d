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
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
	server *stack.Server
	real   *stack.Shared
	quiet  *stack.Shared
}

func newEnvironment() *environment {
	e := &environment{server: stack.NewRaceServer()}
	e.real = stack.NewShared(func() (*stack.Stack, error) {
		running, err := e.start(stack.Options{Load: []string{filepath.Join(root, "artifacts", "samples", "stack")}})
		if err != nil {
			return nil, err
		}
		return running, addRules(running)
	})
	e.quiet = stack.NewShared(func() (*stack.Stack, error) { return e.start(stack.Options{KindsOnly: true}) })
	return e
}

func (e *environment) start(o stack.Options) (*stack.Stack, error) {
	o.Fault, o.Check = fault, checkAudit
	return e.server.Start(context.Background(), o)
}

func (e *environment) tearDown(failed bool) error {
	return errors.Join(e.real.End(failed), e.quiet.End(failed), e.server.Remove())
}

// startStack runs a stack for a single test.
func startStack(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	running, err := shared.start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.End(t.Failed()); err != nil {
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

var (
	// faults are what no log of the server may hold. It is everybody's who reads logs, so no tenant is named in it.
	faults = regexp.MustCompile(`(?i)WARNING: DATA RACE|panic|forbidden|tenant-[abc]`)
	// actor is who had the server write, whom its log names.
	actor = regexp.MustCompile(` user="[^"]*"`)
)

func fault(line string) string {
	return strings.ToLower(faults.FindString(actor.ReplaceAllString(line, "")))
}
