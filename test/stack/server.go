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

package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/cozystack/workerimage-apiserver/hack/stack/binaries"
	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
)

// Server is the program of the server under test. It is built for the first stack that runs it.
type Server struct {
	build func() (path string, err error)
	dir   string
}

// NewServer returns the program as it is shipped.
func NewServer() *Server {
	return newServer([]string{"CGO_ENABLED=0"}, "-trimpath")
}

// NewRaceServer returns the program with the race detector.
func NewRaceServer() *Server {
	return newServer(nil, "-race")
}

func newServer(env []string, flags ...string) *Server {
	s := &Server{}
	s.build = sync.OnceValues(func() (string, error) { return s.compile(env, flags) })
	return s
}

func (s *Server) compile(env, flags []string) (path string, err error) {
	if s.dir, err = os.MkdirTemp("", "server-"); err != nil {
		return "", err
	}
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "Building the server. With empty caches this takes some minutes.")
	path = filepath.Join(s.dir, cluster.ServerName)
	return path, Build(context.Background(), root, "./cmd/workerimage-apiserver", path, env, flags...)
}

// Build makes a program of a package of the module in dir.
func Build(ctx context.Context, dir, pkg, path string, env []string, flags ...string) error {
	command := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	command.Dir, command.Stderr, command.Env = dir, os.Stderr, append(os.Environ(), env...)
	if err := command.Run(); err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	return nil
}

// Start runs a stack with the server, installed with what is shipped unless the options say otherwise.
func (s *Server) Start(ctx context.Context, o Options) (*Stack, error) {
	var err error
	if o.Server, err = s.build(); err != nil {
		return nil, err
	}
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	if o.Manifests == "" {
		o.Manifests = filepath.Join(root, "artifacts", "deploy")
	}
	if o.OneHistory {
		if o, err = s.withOneHistory(o, root); err != nil {
			return nil, fmt.Errorf("install with one history: %w", err)
		}
	}
	return Start(ctx, o)
}

// Remove removes the program, if it was built.
func (s *Server) Remove() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// findRoot returns the directory of the repository.
func findRoot() (string, error) {
	source, err := binaries.FindSource()
	return filepath.Join(source, "..", ".."), err
}
