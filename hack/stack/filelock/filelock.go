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

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// interval is how often a lock somebody else holds is tried again.
const interval = 100 * time.Millisecond

// ErrHeld is returned for a lock that somebody else holds.
var ErrHeld = errors.New("held by another process")

// Lock is a lock that is held.
type Lock struct {
	file *os.File
}

// Try takes the lock of a file, made if need be, or returns ErrHeld.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrHeld
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// Wait takes the lock of a file as soon as it is free.
func Wait(ctx context.Context, path string) (*Lock, error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Close lets go of the lock.
func (l *Lock) Close() error {
	return l.file.Close()
}
