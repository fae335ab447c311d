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
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cozystack/workerimage-apiserver/hack/stack/filelock"
)

const (
	// reportInterval is how often a build that goes on says so.
	reportInterval = 15 * time.Second
	// shownLines is how much of the output of a failed build is shown.
	shownLines = 20
)

// artifact is a file that is made once for each key.
type artifact struct {
	name    string
	version string
	key     string
	// estimate is how long making it takes on two cores.
	estimate string
	make     func(ctx context.Context, target string, log io.Writer) error
}

// cacheKey stands for all its parts, in order.
func cacheKey(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(fmt.Appendf(nil, "%d:%s", len(part), part))
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// ensure returns the path of an artifact. Of several processes that ask at once, one makes it and the others wait.
func ensure(ctx context.Context, o Options, a artifact) (string, error) {
	dir := filepath.Join(o.Cache, fmt.Sprintf("%s-%s-%s", a.name, a.version, a.key))
	path := filepath.Join(dir, a.name)
	if exists(path) {
		return path, nil
	}
	if err := os.MkdirAll(o.Cache, 0o750); err != nil {
		return "", err
	}
	lock, err := filelock.Try(dir + ".lock")
	if errors.Is(err, filelock.ErrHeld) {
		o.Progress.Step("waiting for the build of %s %s that another process has begun", a.name, a.version)
		lock, err = filelock.Wait(ctx, dir+".lock")
	}
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if exists(path) {
		return path, nil
	}
	return path, a.makeInto(ctx, o, dir)
}

// makeInto makes the artifact in a directory of its own that is then moved into place: dir is complete or not there.
func (a artifact) makeInto(ctx context.Context, o Options, dir string) error {
	scratch, err := os.MkdirTemp(o.Cache, ".making-"+a.name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	o.Progress.Step("building %s %s (about %s on two cores, once) ...", a.name, a.version, a.estimate)
	started := time.Now()
	log := &buildLog{}
	stop := every(reportInterval, func() {
		o.Progress.Step("building %s: %s so far, %d packages compiled", a.name, time.Since(started).Round(time.Second), log.packages())
	})
	err = a.make(ctx, filepath.Join(scratch, a.name), log)
	stop()
	if err != nil {
		return fmt.Errorf("build %s %s: %w\n%s", a.name, a.version, err, log.tail(shownLines))
	}
	if err := os.Rename(scratch, dir); err != nil {
		return err
	}
	o.Progress.Step("built %s %s in %s", a.name, a.version, time.Since(started).Round(time.Second))
	return nil
}

// every calls f at an interval until the returned function has been called.
func every(interval time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				f()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// buildLog is the output of a go command that names each package it compiles on a line of its own.
type buildLog struct {
	mu     sync.Mutex
	output bytes.Buffer
}

func (l *buildLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output.Write(p)
}

func (l *buildLog) packages() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.output.String()) {
		if !strings.HasPrefix(line, "go: ") {
			n++
		}
	}
	return n
}

func (l *buildLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimRight(l.output.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
