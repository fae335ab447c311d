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
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// settleTime is how long the files must be left alone before they are read again.
const settleTime = 200 * time.Millisecond

// Run reads the files again when they change, until ctx is done. Files that cannot be read change
// nothing.
func (s *Snapshot) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Error(err, "Changes of the files of the snapshot will not be seen")
		return
	}
	defer watcher.Close()
	s.follow(ctx, watcher)
}

func (s *Snapshot) follow(ctx context.Context, watcher *fsnotify.Watcher) {
	logger := klog.FromContext(ctx)
	settled := time.NewTimer(0)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-watcher.Errors:
			logger.Error(err, "Changes of the files of the snapshot may have been missed")
			settled.Reset(settleTime)
		case event := <-watcher.Events:
			if s.concerns(event) {
				settled.Reset(settleTime)
			}
		case <-settled.C:
			// The watches come first: what changes after them is read once more.
			if err := s.watch(watcher); err != nil {
				logger.Error(err, "Changes of some files of the snapshot will not be seen")
			}
			s.reload(ctx)
		}
	}
}

// watch makes the watcher watch all folders that a manifest is in or may appear in. Folders are watched
// and not files, since editors put another file in the place of the one they change.
func (s *Snapshot) watch(watcher *fsnotify.Watcher) error {
	var errs []error
	for _, path := range s.files() {
		errs = append(errs, watcher.Add(filepath.Dir(path)))
		_, folders, err := find(path)
		errs = append(errs, err)
		for _, folder := range folders {
			errs = append(errs, watcher.Add(folder))
		}
	}
	return errors.Join(errs...)
}

// files are the paths that are not standard input.
func (s *Snapshot) files() []string {
	var out []string
	for _, path := range s.paths {
		if path != standardInput {
			out = append(out, filepath.Clean(path))
		}
	}
	return out
}

// mountedData is the link that is exchanged when a mounted ConfigMap changes.
const mountedData = "..data"

// concerns is true for an event that may change what the paths hold.
func (s *Snapshot) concerns(event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	name := filepath.Clean(event.Name)
	isData := filepath.Base(name) == mountedData
	for _, path := range s.files() {
		below, err := filepath.Rel(path, name)
		isBelow := err == nil && filepath.IsLocal(below)
		switch {
		case name == path, isData && filepath.Dir(name) == filepath.Dir(path):
			return true
		case isBelow && (isData || !isHidden(name)):
			return true
		}
	}
	return false
}

func (s *Snapshot) reload(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c, err := s.load()
	if err != nil {
		logger.Error(err, "Cannot read the snapshot again, what was read before stays")
		return
	}
	logger.V(2).Info("Read the snapshot again", "objects", len(c.objects))
}
