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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is a directory with a go.mod of its own whose requirements decide a build.
type module struct {
	dir      string
	requires map[string]string
	// fingerprint stands for the requirements, their checksums and the toolchain.
	fingerprint string
}

func openModule(ctx context.Context, dir string) (*module, error) {
	m := &module{dir: dir, requires: map[string]string{}}
	var file struct {
		Require []struct{ Path, Version string }
	}
	out, err := m.goCommand(ctx, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, fmt.Errorf("read the go.mod of %s: %w", dir, err)
	}
	for _, r := range file.Require {
		m.requires[r.Path] = r.Version
	}
	toolchain, err := m.goCommand(ctx, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return nil, err
	}
	parts := []string{string(toolchain)}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(content))
	}
	m.fingerprint = cacheKey(parts...)
	return m, nil
}

func (m *module) version(path string) (string, error) {
	version, ok := m.requires[path]
	if !ok {
		return "", fmt.Errorf("module in %s does not require %s", m.dir, path)
	}
	return version, nil
}

// build returns the recipe of a program of the module.
func (m *module) build(pkg string, flags ...string) func(ctx context.Context, target string, log io.Writer) error {
	return func(ctx context.Context, target string, log io.Writer) error {
		args := append([]string{"build", "-v", "-o", target}, flags...)
		cmd := m.command(ctx, append(args, pkg)...)
		cmd.Stdout, cmd.Stderr = log, log
		return cmd.Run()
	}
}

func (m *module) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	out, err := m.command(ctx, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), m.dir, err)
	}
	return out, nil
}

// command runs the go tool in the module alone, whatever workspace surrounds it.
func (m *module) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// capture keeps what a go command prints on standard output in a file.
func (m *module) capture(ctx context.Context, target string, log io.Writer, args ...string) error {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	cmd := m.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = out, log
	return errors.Join(cmd.Run(), out.Close())
}
