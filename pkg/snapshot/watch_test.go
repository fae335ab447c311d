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

package snapshot

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// patience is how long a test waits for what takes a moment.
const patience = 30 * time.Second

// followed is a Snapshot that runs, and a watch of its DataVolumes.
type followed struct {
	t     *testing.T
	watch watch.Interface
	log   *lines
}

// lines is a log that can be read.
type lines struct {
	mu     sync.Mutex
	text   bytes.Buffer
	change chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.change <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) contain(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// follow opens a Snapshot and runs it until the test ends.
func follow(t *testing.T, stdin string, paths ...string) *followed {
	t.Helper()
	log := &lines{change: make(chan struct{}, 1)}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(2)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	s, err := Open(ctx, paths, strings.NewReader(stdin))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.dataVolumes.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: s.dataVolumes.resourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		w.Stop()
	})
	f := &followed{t: t, watch: w, log: log}
	f.waitForLog("Read the snapshot again")
	return f
}

func (f *followed) waitForLog(text string) {
	f.t.Helper()
	timeout := time.After(patience)
	for !f.log.contain(text) {
		select {
		case <-f.log.change:
		case <-timeout:
			f.t.Fatalf("the log never says %q", text)
		}
	}
}

// expect waits for an event, and returns the phase of its object.
func (f *followed) expect(event watch.EventType, name string) string {
	f.t.Helper()
	select {
	case got := <-f.watch.ResultChan():
		u := got.Object.(*unstructured.Unstructured)
		if got.Type != event || u.GetName() != name {
			f.t.Fatalf("%s of %s instead of %s of %s", got.Type, u.GetName(), event, name)
		}
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase
	case <-time.After(patience):
		f.t.Fatalf("%s of %s never came", event, name)
		return ""
	}
}

func failed(manifest string) string { return strings.ReplaceAll(manifest, "Succeeded", "Failed") }

func TestAFileThatIsWrittenIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	path := write(t, folder, "golden.yaml", goldenManifest)
	for what, opened := range map[string]string{"as a file": path, "in a folder": folder} {
		t.Run(what, func(t *testing.T) {
			write(t, folder, "golden.yaml", goldenManifest)
			f := follow(t, "", opened)
			write(t, folder, "golden.yaml", failed(goldenManifest))
			if phase := f.expect(watch.Modified, goldenName); phase != "Failed" {
				t.Errorf("the phase is %s", phase)
			}
		})
	}
}

func TestAFileThatAnotherOneTakesThePlaceOfIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	path := write(t, folder, "golden.yaml", goldenManifest)
	f := follow(t, "", path)
	for _, manifest := range []string{failed(goldenManifest), goldenManifest, failed(goldenManifest)} {
		if err := os.Rename(write(t, folder, ".golden.yaml.swp", manifest), path); err != nil {
			t.Fatal(err)
		}
		f.expect(watch.Modified, goldenName)
	}
}

func TestFilesAndFoldersComeAndGo(t *testing.T) {
	folder := t.TempDir()
	f := follow(t, "", folder)
	path := write(t, folder, "golden.yaml", goldenManifest)
	f.expect(watch.Added, goldenName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.expect(watch.Deleted, goldenName)

	path = write(t, folder, "deep/down/golden.yaml", goldenManifest)
	f.expect(watch.Added, goldenName)
	write(t, folder, "deep/down/golden.yaml", failed(goldenManifest))
	f.expect(watch.Modified, goldenName)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	f.expect(watch.Deleted, goldenName)
}

func TestAFileThatCannotBeReadChangesNothing(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "golden.yaml", goldenManifest)
	f := follow(t, "", folder)
	write(t, folder, "golden.yaml", "{")
	write(t, folder, "other.yaml", strings.ReplaceAll(goldenManifest, "aaa", "bbb"))
	f.waitForLog("what was read before stays")
	f.waitForLog("golden.yaml, document 1")
	write(t, folder, "golden.yaml", goldenManifest)
	f.expect(watch.Added, "talos-worker-bbb-v1.13.6")
}

func TestEverythingIsReadAgainWhenEventsWereLost(t *testing.T) {
	log := &lines{change: make(chan struct{}, 1)}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(2)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	folder := t.TempDir()
	s, err := Open(ctx, []string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	var running sync.WaitGroup
	running.Go(func() { s.follow(ctx, watcher) })
	defer running.Wait()
	defer cancel()
	f := &followed{t: t, log: log}
	f.waitForLog("Read the snapshot again")

	// The folder is not watched any more, so that the file is found for no other reason.
	if err := watcher.Remove(folder); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "golden.yaml", goldenManifest)
	watcher.Errors <- fsnotify.ErrEventOverflow
	f.waitForLog("may have been missed")
	f.waitForLog(`"Read the snapshot again" objects=1`)
}

func TestStandardInputStays(t *testing.T) {
	folder := t.TempDir()
	f := follow(t, goldenManifest, "-", folder)
	write(t, folder, "other.yaml", strings.ReplaceAll(goldenManifest, "aaa", "bbb"))
	f.expect(watch.Added, "talos-worker-bbb-v1.13.6")
}

func TestOnlyWhatMayChangeTheSnapshotIsReadAgain(t *testing.T) {
	s := &Snapshot{paths: []string{"-", "dumps", "conf/golden.yaml", "."}}
	withoutDot := &Snapshot{paths: s.paths[:3]}
	tests := []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{name: "dumps", op: fsnotify.Create, want: true},
		{name: "dumps/a.yaml", op: fsnotify.Write, want: true},
		{name: "dumps/deep/a.yaml", op: fsnotify.Remove, want: true},
		{name: "dumps/..data", op: fsnotify.Create, want: true},
		{name: "dumps/.a.yaml.swp", op: fsnotify.Write},
		{name: "dumps/a.yaml", op: fsnotify.Chmod},
		{name: "conf/golden.yaml", op: fsnotify.Rename, want: true},
		{name: "conf/..data", op: fsnotify.Create, want: true},
		{name: "conf/other.yaml", op: fsnotify.Write},
		{name: "dumps-of-yesterday/a.yaml", op: fsnotify.Write},
		{name: "other", op: fsnotify.Create},
	}
	for _, tc := range tests {
		if got := withoutDot.concerns(fsnotify.Event{Name: tc.name, Op: tc.op}); got != tc.want {
			t.Errorf("%s of %s: %v", tc.op, tc.name, got)
		}
	}
	if !s.concerns(fsnotify.Event{Name: "./other/a.yaml", Op: fsnotify.Write}) {
		t.Error("the current folder is not looked at")
	}
}
