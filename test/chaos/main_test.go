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
	"regexp"
	"testing"

	"github.com/cozystack/workerimage-apiserver/test/stack"
)

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
	// server is built as it is shipped: times and memory are measured.
	server *stack.Server
	// Of three replicas, each has a history of its own, or they serve one.
	single, replicas, oneHistory *stack.Shared
	figures                      *figures
}

func newEnvironment() *environment {
	e := &environment{server: stack.NewServer(), figures: &figures{}}
	e.single = stack.NewShared(func() (*stack.Stack, error) { return e.start(stack.Options{KindsOnly: true}) })
	e.replicas = stack.NewShared(func() (*stack.Stack, error) { return e.start(stack.Options{KindsOnly: true, Replicas: 3}) })
	e.oneHistory = stack.NewShared(func() (*stack.Stack, error) {
		return e.start(stack.Options{KindsOnly: true, Replicas: 3, OneHistory: true})
	})
	return e
}

func (e *environment) start(o stack.Options) (*stack.Stack, error) {
	o.Fault = faults.FindString
	return e.server.Start(context.Background(), o)
}

func (e *environment) tearDown(failed bool) error {
	return errors.Join(e.single.End(failed), e.replicas.End(failed), e.oneHistory.End(failed), e.server.Remove())
}

// faults are what no log of the server may hold, whatever is broken. Of a request that is given up it says that it has not
// panicked.
var faults = regexp.MustCompile(`(?i)panic: |observed a panic|panicked: true|fatal error|unexpected fault`)
