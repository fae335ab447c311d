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

package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// load merges the files that are configured, and checks that they have what is selected from them.
func (c Config) load() (*clientcmdapi.Config, []error) {
	paths, field := c.paths()
	if len(paths) == 0 {
		return clientcmdapi.NewConfig(), c.selectionWithoutFiles()
	}
	var faults []error
	rules := &clientcmd.ClientConfigLoadingRules{}
	for _, path := range paths {
		expanded, err := expandHome(path)
		if err == nil {
			_, err = clientcmd.LoadFromFile(expanded)
		}
		if err != nil {
			faults = append(faults, readError(field, path, err))
			continue
		}
		rules.Precedence = append(rules.Precedence, expanded)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	files, err := rules.Load()
	if err != nil {
		return nil, []error{&FieldError{Field: field, Err: err}}
	}
	return files, c.checkSelection(files)
}

func (c Config) paths() (paths []string, field string) {
	if len(c.ConfigPaths) > 0 {
		return c.ConfigPaths, "config_paths"
	}
	if c.ConfigPath != "" {
		return []string{c.ConfigPath}, "config_path"
	}
	return nil, ""
}

func readError(field, path string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fieldError(field, "there is no file %s", path)
	}
	return fieldError(field, "file %s cannot be used: %w", path, err)
}

// checkSelection looks for the context, the cluster and the user by their names.
func (c Config) checkSelection(files *clientcmdapi.Config) []error {
	var faults []error
	for _, selected := range []struct {
		field, kind, name string
		known             []string
	}{
		{"config_context", "context", c.ConfigContext, sortedKeys(files.Contexts)},
		{"config_context_cluster", "cluster", c.ConfigContextCluster, sortedKeys(files.Clusters)},
		{"config_context_auth_info", "user", c.ConfigContextAuthInfo, sortedKeys(files.AuthInfos)},
	} {
		if selected.name != "" && !slices.Contains(selected.known, selected.name) {
			faults = append(faults, fieldError(selected.field, "the kubeconfig has no %s %q, it has %s",
				selected.kind, selected.name, quoted(selected.known)))
		}
	}
	return faults
}

// selectionWithoutFiles refuses to select from nothing.
func (c Config) selectionWithoutFiles() []error {
	var faults []error
	for _, selected := range []struct{ field, name string }{
		{"config_context", c.ConfigContext},
		{"config_context_cluster", c.ConfigContextCluster},
		{"config_context_auth_info", c.ConfigContextAuthInfo},
	} {
		if selected.name != "" {
			faults = append(faults, fieldError(selected.field, "there is no kubeconfig to select %q from: set config_path", selected.name))
		}
	}
	return faults
}

func expandHome(path string) (string, error) {
	rest, found := strings.CutPrefix(path, "~/")
	if !found {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, rest), nil
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var texts []string
	for _, name := range names {
		texts = append(texts, fmt.Sprintf("%q", name))
	}
	return strings.Join(texts, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
