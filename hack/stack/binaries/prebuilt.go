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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// downloadTimeout bounds what setup-envtest may take to fetch a control plane; a build takes longer.
const downloadTimeout = 3 * time.Minute

// findPrebuilt returns the paths, by name, of a control plane somebody else built: in KUBEBUILDER_ASSETS, else where
// setup-envtest keeps or gets one of the same Kubernetes minor. It returns none where etcd or kube-apiserver is missing.
// KUBEBUILDER_ASSETS may hold any version, and does not count where a minor is asked for.
func findPrebuilt(ctx context.Context, o Options, version string) map[string]string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" && o.Kubernetes == "" {
		if found := programsIn(dir); found != nil {
			o.Progress.Step("using the control plane in KUBEBUILDER_ASSETS, %s", dir)
			return found
		}
	}
	setup, err := exec.LookPath("setup-envtest")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	minor := minorOf(version) + ".x"
	for _, args := range [][]string{{"use", "-i", "-p", "path", minor}, {"use", "-p", "path", minor}} {
		out, err := exec.CommandContext(ctx, setup, args...).Output()
		if err != nil {
			continue
		}
		dir := strings.TrimSpace(string(out))
		if found := programsIn(dir); found != nil {
			o.Progress.Step("using the control plane setup-envtest keeps in %s", dir)
			return found
		}
	}
	return nil
}

func programsIn(dir string) map[string]string {
	found := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found[name] = path
		}
	}
	if found["etcd"] == "" || found["kube-apiserver"] == "" {
		return nil
	}
	return found
}
