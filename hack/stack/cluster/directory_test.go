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

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestADirectoryBelongsToOneStackAtATime(t *testing.T) {
	path := t.TempDir()
	first, err := claimDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claimDirectory(path); err == nil {
		t.Error("a second stack was let in")
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	again, err := claimDirectory(path)
	if err != nil {
		t.Fatalf("after the first stack ended: %v", err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}

func TestWhatAnEndedStackLeftIsRemoved(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, stateFile))
	write(t, filepath.Join(path, "etcd", "member"))
	write(t, filepath.Join(path, LogFile))
	d, err := claimDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.release(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(filepath.Join(path, "etcd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data of the ended stack: %v", err)
	}
	if _, err := os.Stat(filepath.Join(path, LogFile)); err != nil {
		t.Errorf("the output of the stack that starts: %v", err)
	}
	if state, err := ReadState(path); err != nil || state.PID != os.Getpid() || state.Ready {
		t.Errorf("got state %+v, %v; want this process, not ready", state, err)
	}
}

func TestADirectoryOfSomethingElseIsLeftAlone(t *testing.T) {
	path := t.TempDir()
	precious := filepath.Join(path, "thesis.tex")
	write(t, precious)
	if _, err := claimDirectory(path); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestStoppingWhereNoStackRunsSaysSo(t *testing.T) {
	path := t.TempDir()
	if err := StopRunning(t.Context(), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("where none ever ran: %v", err)
	}
	d, err := claimDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.release(); err != nil {
		t.Fatal(err)
	}
	if err := StopRunning(t.Context(), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("where one has ended: %v", err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
}
