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
	"os"
	"path/filepath"

	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

// Options say where to build from and where to keep the results.
type Options struct {
	// Source is the directory of the pinned modules, hack/stack of the repository.
	Source string
	// Kubernetes is the minor of the control plane, such as 1.36; empty means the default.
	Kubernetes string
	// Cache is the directory of finished builds; empty means DefaultCache.
	Cache string
	// Progress hears of every build.
	Progress *progress.Reporter
}

// Set is the programs of one stack, by path.
type Set struct {
	Etcd                  string
	KubeAPIServer         string
	KubeControllerManager string
	Kubectl               string

	CDIVersion    string
	CDIController string
	CDIAPIServer  string
	// CDIManifests is a file with what cdi-operator would install.
	CDIManifests string
}

// Ensure returns the programs, after building those that are missing.
func Ensure(ctx context.Context, o Options) (*Set, error) {
	o, err := o.withCache()
	if err != nil {
		return nil, err
	}
	set := &Set{}
	if err := ensureKubernetes(ctx, o, set); err != nil {
		return nil, err
	}
	if err := ensureCDI(ctx, o, set); err != nil {
		return nil, err
	}
	return set, nil
}

// withCache fills in the cache.
func (o Options) withCache() (Options, error) {
	if o.Cache != "" {
		return o, nil
	}
	dir, err := DefaultCache()
	o.Cache = dir
	return o, err
}

// FindSource looks for the pinned modules from the working directory upwards.
func FindSource() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		source := filepath.Join(dir, "hack", "stack")
		if exists(filepath.Join(source, defaultKubernetes, "go.mod")) {
			return source, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no hack/stack in the working directory or above it")
		}
		dir = parent
	}
}

// DefaultCache is the cache of this user.
func DefaultCache() (string, error) {
	if dir := os.Getenv("WORKERIMAGE_CACHE"); dir != "" {
		return filepath.Join(dir, "workerimage-apiserver", "stack"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory, WORKERIMAGE_CACHE can name one: %w", err)
	}
	return filepath.Join(dir, "workerimage-apiserver", "stack"), nil
}
