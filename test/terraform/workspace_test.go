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

package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a command may take. None that succeeds comes near it.
const patience = 3 * time.Minute

const required = `
terraform {
  required_providers {
    workerimage = {
      source = "cozystack/workerimage"
    }
  }
}
`

// workspace is a directory with a configuration and its state.
type workspace struct {
	platform *platform
	dir      string
	env      map[string]string
}

// newWorkspace begins with a configuration, and without a state.
func newWorkspace(t *testing.T, p *platform, config string) *workspace {
	t.Helper()
	w := &workspace{platform: p, dir: t.TempDir(), env: map[string]string{
		"TF_CLI_CONFIG_FILE":  p.config,
		"TF_IN_AUTOMATION":    "1",
		"TF_CLI_ARGS":         "-no-color",
		"KUBE_CONFIG_PATH":    p.Kubeconfig(),
		"KUBECONFIG":          p.Kubeconfig(),
		"PATH":                filepath.Dir(p.Kubectl()) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"TF_PLUGIN_CACHE_DIR": "",
	}}
	w.write(t, config)
	return w
}

// write replaces the configuration.
func (w *workspace) write(t *testing.T, config string) {
	t.Helper()
	if !strings.Contains(config, "required_providers") {
		config = required + config
	}
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// result is what became of a command.
type result struct {
	code           int
	stdout, stderr string
}

// try runs OpenTofu.
func (w *workspace) try(t *testing.T, args ...string) result {
	t.Helper()
	return w.start(t, args...)()
}

// start runs OpenTofu until the returned function is called, which waits for its end.
func (w *workspace) start(t *testing.T, args ...string) (wait func() result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	command := exec.CommandContext(ctx, w.platform.tofu, args...)
	command.Dir = w.dir
	command.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(w.env)) {
		command.Env = append(command.Env, name+"="+w.env[name])
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return func() result {
		t.Helper()
		defer cancel()
		err := command.Wait()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
			t.Fatalf("tofu %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
		}
		return result{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	}
}

// run fails the test if OpenTofu fails.
func (w *workspace) run(t *testing.T, args ...string) result {
	t.Helper()
	r := w.try(t, args...)
	if r.code != 0 {
		t.Fatalf("tofu %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// refused fails the test if OpenTofu does not fail, or does not say a text, wherever its lines break.
func (w *workspace) refused(t *testing.T, says string, args ...string) {
	t.Helper()
	r := w.try(t, args...)
	words := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╵", " ", "╷", " ").Replace(r.stderr)), " ")
	if r.code == 0 || !strings.Contains(words, says) {
		t.Errorf("tofu %s: exit code %d, and it does not say %q:\n%s%s", strings.Join(args, " "), r.code, says, r.stdout, r.stderr)
	}
}

func (w *workspace) apply(t *testing.T) result {
	t.Helper()
	return w.run(t, "apply", "-auto-approve", "-input=false")
}

// planIsEmpty fails the test if a plan has a change of a resource or of an output.
func (w *workspace) planIsEmpty(t *testing.T) {
	t.Helper()
	if r := w.try(t, "plan", "-input=false", "-detailed-exitcode"); r.code != 0 {
		t.Errorf("the plan is not empty, exit code %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// planSays fails the test if a plan has no change, or does not say a text.
func (w *workspace) planSays(t *testing.T, text string) {
	t.Helper()
	if r := w.try(t, "plan", "-input=false", "-detailed-exitcode"); r.code != 2 || !strings.Contains(r.stdout, text) {
		t.Errorf("the plan does not say %q, exit code %d:\n%s%s", text, r.code, r.stdout, r.stderr)
	}
}

// output returns the value of an output.
func (w *workspace) output(t *testing.T, name string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(w.run(t, "output", "-json", name).stdout), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// status returns the phase and progress of an image in the state, by the address of its resource.
func (w *workspace) status(t *testing.T, address string) (phase string, progress any) {
	t.Helper()
	var state struct {
		Values struct {
			RootModule struct {
				Resources []struct {
					Address string
					Values  struct{ Status map[string]any }
				}
			} `json:"root_module"`
		}
	}
	if err := json.Unmarshal([]byte(w.run(t, "show", "-json").stdout), &state); err != nil {
		t.Fatal(err)
	}
	for _, resource := range state.Values.RootModule.Resources {
		if resource.Address == address {
			phase, _ = resource.Values.Status["phase"].(string)
			return phase, resource.Values.Status["progress"]
		}
	}
	t.Fatalf("the state has no %s", address)
	return "", nil
}
