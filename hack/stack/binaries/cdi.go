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
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const cdiModule = "kubevirt.io/containerized-data-importer"

// ensureCDI fills in CDI's controller and API server, and the manifests cdi-operator would apply.
func ensureCDI(ctx context.Context, o Options, set *Set) error {
	module, err := openModule(ctx, filepath.Join(o.Source, "cdi"))
	if err != nil {
		return err
	}
	if set.CDIVersion, err = module.version(cdiModule); err != nil {
		return err
	}
	flags := []string{"-trimpath", "-ldflags", "-s -w"}
	for _, p := range []program{
		{name: "cdi-controller", pkg: cdiModule + "/cmd/cdi-controller", estimate: "2 minutes", path: &set.CDIController},
		{name: "cdi-apiserver", pkg: cdiModule + "/cmd/cdi-apiserver", estimate: "10 seconds", path: &set.CDIAPIServer},
	} {
		edits := cdiEdits[p.name]
		*p.path, err = ensure(ctx, o, artifact{
			name:     p.name,
			version:  set.CDIVersion,
			key:      cacheKey(append([]string{module.fingerprint, p.pkg, fmt.Sprint(edits)}, flags...)...),
			estimate: p.estimate,
			make: func(ctx context.Context, target string, log io.Writer) error {
				main, err := writeEdited(ctx, module, p.pkg, edits, filepath.Dir(target))
				if err != nil {
					return err
				}
				return module.build(main, flags...)(ctx, target, log)
			},
		})
		if err != nil {
			return err
		}
	}
	source, err := os.ReadFile(filepath.Join(module.dir, "manifests", "main.go"))
	if err != nil {
		return err
	}
	set.CDIManifests, err = ensure(ctx, o, artifact{
		name:     "cdi-manifests.yaml",
		version:  set.CDIVersion,
		key:      cacheKey(module.fingerprint, string(source)),
		estimate: "20 seconds",
		make: func(ctx context.Context, target string, log io.Writer) error {
			return module.capture(ctx, target, log, "run", "-trimpath", "-v", "./manifests")
		},
	})
	return err
}

// edit is a replacement in the source of a program, in the one place it occurs.
type edit struct {
	old, new string
}

// cdiEdits let CDI's programs, which expect a container each, run side by side on one machine: what their main packages
// fix in constants is read from the environment.
var cdiEdits = map[string][]edit{
	"cdi-controller": {
		{"type ControllerEnvs struct {", "type ControllerEnvs struct {\n" +
			"\tMetricsAddress string `split_words:\"true\" required:\"true\"`\n" +
			"\tReadyFile string `split_words:\"true\" required:\"true\"`\n" +
			"\tTokenPublicKey string `split_words:\"true\" required:\"true\"`\n" +
			"\tTokenPrivateKey string `split_words:\"true\" required:\"true\"`\n"},
		{`":8443"`, "controllerEnvs.MetricsAddress"},
		{"os.Create(readyFile)", "os.Create(controllerEnvs.ReadyFile)"},
		{"os.Remove(readyFile)", "os.Remove(controllerEnvs.ReadyFile)"},
		{"os.ReadFile(controller.TokenPublicKeyPath)", "os.ReadFile(controllerEnvs.TokenPublicKey)"},
		{"os.ReadFile(controller.TokenPrivateKeyPath)", "os.ReadFile(controllerEnvs.TokenPrivateKey)"},
	},
	"cdi-apiserver": {
		{"type APIServerEnvs struct {", "type APIServerEnvs struct {\n\tPort uint `split_words:\"true\" required:\"true\"`\n"},
		{"\t\tdefaultPort,\n", "\t\tapiServerArgs.Port,\n"},
		{`"0.0.0.0"`, `"127.0.0.1"`},
	},
}

// writeEdited writes the edited source of a main package of a single file to dir and returns its path. Built from there
// it is still a program of the module, and the module cache stays as it is.
func writeEdited(ctx context.Context, m *module, pkg string, edits []edit, dir string) (string, error) {
	out, err := m.goCommand(ctx, "list", "-f", `{{.Dir}}{{range .GoFiles}} {{.}}{{end}}`, pkg)
	if err != nil {
		return "", err
	}
	files := strings.Fields(string(out))
	if len(files) != 2 {
		return "", fmt.Errorf("package %s is not a single file: %q", pkg, files[1:])
	}
	source, err := os.ReadFile(filepath.Join(files[0], files[1]))
	if err != nil {
		return "", err
	}
	edited, err := applyEdits(string(source), edits)
	if err != nil {
		return "", fmt.Errorf("edit %s of %s: %w", files[1], pkg, err)
	}
	path := filepath.Join(dir, files[1])
	return path, os.WriteFile(path, []byte(edited), 0o600)
}

// applyEdits makes each edit; a source it does not fit is another version's.
func applyEdits(source string, edits []edit) (string, error) {
	for _, e := range edits {
		if n := strings.Count(source, e.old); n != 1 {
			return "", fmt.Errorf("%q occurs %d times and not once", e.old, n)
		}
		source = strings.Replace(source, e.old, e.new, 1)
	}
	return source, nil
}
