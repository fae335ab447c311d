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
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cozystack/workerimage-apiserver/hack/stack/filelock"
)

const (
	lockFile     = "lock"
	simRulesFile = "sim-rules.yaml"
	// LogFile is where a stack in the background writes its own output, in its directory.
	LogFile = "stack.log"
)

// ErrNotRunning is returned where no stack runs in a directory.
var ErrNotRunning = errors.New("no stack runs there")

// StopRunning ends the stack that another process runs in dir, and waits until it is gone.
func StopRunning(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, lockFile)); errors.Is(err, os.ErrNotExist) {
		return ErrNotRunning
	}
	lock, err := filelock.Try(filepath.Join(dir, lockFile))
	if err == nil {
		return errors.Join(ErrNotRunning, lock.Close())
	}
	if !errors.Is(err, filelock.ErrHeld) {
		return err
	}
	state, err := ReadState(dir)
	if err != nil {
		return err
	}
	if err := syscall.Kill(state.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", state.PID, err)
	}
	if lock, err = filelock.Wait(ctx, filepath.Join(dir, lockFile)); err != nil {
		return fmt.Errorf("wait for process %d: %w", state.PID, err)
	}
	return lock.Close()
}

// CheckFree fails if a stack runs in dir.
func CheckFree(dir string) error {
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	return lock.Close()
}

// directory is where a stack keeps its files. It belongs to one process at a time.
type directory struct {
	path string
	lock *filelock.Lock
}

// claimDirectory takes a directory and removes what an ended stack left in it.
func claimDirectory(path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, lock: lock}
	if err := d.clear(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := writeState(d, State{PID: os.Getpid(), Dir: path}); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func lockDirectory(path string) (*filelock.Lock, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Try(filepath.Join(path, lockFile))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("a stack runs in %s already: end it first", path)
	}
	return lock, err
}

// clear removes all files but those of the process that is starting. A directory that is not a stack's is left alone.
func (d *directory) clear() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == lockFile || e.Name() == LogFile })
	isState := func(e os.DirEntry) bool { return e.Name() == stateFile }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isState) {
		return fmt.Errorf("%s holds files that are not of a stack", d.path)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(d.file(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (d *directory) file(name string) string {
	return filepath.Join(d.path, name)
}

func (d *directory) release() error {
	return d.lock.Close()
}
