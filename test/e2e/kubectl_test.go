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
	"bufio"
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cozystack/workerimage-apiserver/test/await"
)

// kubectl is the real one, as the administrator uses it.
type kubectl struct {
	path       string
	kubeconfig string
	cache      string
}

// run returns what kubectl prints, and fails the test if kubectl fails.
func (k kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := k.try(t.Context(), "", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// refused returns what kubectl says when it fails, and fails the test if it does not.
func (k kubectl) refused(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := k.try(t.Context(), "", args...)
	if err == nil {
		t.Fatalf("kubectl %s succeeds:\n%s", strings.Join(args, " "), stdout)
	}
	return stderr
}

// apply applies a manifest.
func (k kubectl) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, stderr, err := k.try(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, stderr)
	}
}

func (k kubectl) try(ctx context.Context, input string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, await.Patience)
	defer cancel()
	command := k.command(ctx, args...)
	var out, errOut bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &errOut
	err = command.Run()
	return out.String(), errOut.String(), err
}

func (k kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig=" + k.kubeconfig, "--cache-dir=" + k.cache}, args...)...)
}

// following is a kubectl that runs on.
type following struct {
	lines chan string
}

// follow runs kubectl until the test ends.
func (k kubectl) follow(t *testing.T, args ...string) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := k.command(ctx, args...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	f := &following{lines: make(chan string, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(f.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			f.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		var exit *exec.ExitError
		if err := command.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		if t.Failed() {
			t.Logf("kubectl %s says: %s", strings.Join(args, " "), stderr.String())
		}
	})
	return f
}

// until returns the lines up to the first that the condition holds for.
func (f *following) until(t *testing.T, what string, condition func(line string) bool) []string {
	t.Helper()
	timeout := time.NewTimer(await.Patience)
	defer timeout.Stop()
	var lines []string
	for {
		select {
		case line, open := <-f.lines:
			if !open {
				t.Fatalf("wait for %s: kubectl ended after\n%s", what, strings.Join(lines, "\n"))
			}
			lines = append(lines, line)
			if condition(line) {
				return lines
			}
		case <-timeout.C:
			t.Fatalf("wait for %s: kubectl prints only\n%s", what, strings.Join(lines, "\n"))
		}
	}
}
