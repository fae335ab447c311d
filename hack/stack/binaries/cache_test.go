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

package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

func TestCacheKeyDependsOnEveryPartAndTheirOrder(t *testing.T) {
	base := cacheKey("go.mod", "go.sum")
	if again := cacheKey("go.mod", "go.sum"); again != base {
		t.Errorf("the same parts gave %s and %s", base, again)
	}
	for name, parts := range map[string][]string{
		"another part":           {"go.mod", "go.sun"},
		"another order":          {"go.sum", "go.mod"},
		"another split":          {"go.mo", "dgo.sum"},
		"one part of both":       {"go.modgo.sum"},
		"an empty part more":     {"go.mod", "go.sum", ""},
		"the first part missing": {"go.sum"},
	} {
		if key := cacheKey(parts...); key == base {
			t.Errorf("%s gave the same key", name)
		}
	}
}

func TestAnArtifactIsMadeOnceHoweverManyAsk(t *testing.T) {
	const askers = 8
	var made, waiting atomic.Int32
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	a := artifact{name: "tool", version: "v1", key: "k", make: func(_ context.Context, target string, _ io.Writer) error {
		if made.Add(1) > 1 {
			free()
		}
		<-release
		return os.WriteFile(target, []byte("program"), 0o600)
	}}
	o := options(t)
	// The build goes on until all others are known to wait for it.
	o.Progress = progress.NewReporter(writerFunc(func(line []byte) (int, error) {
		if strings.Contains(string(line), "waiting for the build") && waiting.Add(1) == askers-1 {
			free()
		}
		return len(line), nil
	}))
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			path, err := ensure(t.Context(), o, a)
			if err != nil {
				t.Error(err)
				return
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != "program" {
				t.Errorf("got %q, %v", content, err)
			}
		})
	}
	asking.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
}

func TestAFailedBuildShowsTheEndOfItsOutputAndLeavesNothing(t *testing.T) {
	fails := true
	a := artifact{name: "tool", version: "v1", key: "k", make: func(_ context.Context, target string, log io.Writer) error {
		if err := os.WriteFile(target, []byte("half a program"), 0o600); err != nil {
			return err
		}
		if !fails {
			return os.WriteFile(target, []byte("program"), 0o600)
		}
		for i := range 100 {
			fmt.Fprintf(log, "line %d\n", i)
		}
		return errors.New("exit status 1")
	}}
	o := options(t)
	_, err := ensure(t.Context(), o, a)
	if err == nil {
		t.Fatal("no error")
	}
	if text := err.Error(); !strings.Contains(text, "line 99") || strings.Contains(text, "line 79\n") {
		t.Errorf("want the last %d lines of the output, got: %s", shownLines, text)
	}
	fails = false
	path, err := ensure(t.Context(), o, a)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "program" {
		t.Errorf("after the failure got %q, %v", content, err)
	}
	if left, err := filepath.Glob(filepath.Join(o.Cache, ".making-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBuildLogCountsPackagesAndNotDownloads(t *testing.T) {
	log := &buildLog{}
	fmt.Fprintln(log, "go: downloading k8s.io/api v0.37.2")
	fmt.Fprintln(log, "k8s.io/api/core/v1")
	fmt.Fprintln(log, "k8s.io/client-go/rest")
	if n := log.packages(); n != 2 {
		t.Errorf("got %d packages, want 2", n)
	}
}

// writerFunc is a writer that is a function.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func options(t *testing.T) Options {
	t.Helper()
	return Options{Cache: t.TempDir(), Progress: progress.NewReporter(io.Discard)}
}
