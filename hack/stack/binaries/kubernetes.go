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
	"path/filepath"
	"strings"
)

const kubernetesModule = "k8s.io/kubernetes"

// program is a main package of a pinned module.
type program struct {
	name     string
	pkg      string
	estimate string
	path     *string
}

// ensureKubernetes fills in the control plane: prebuilt programs where there are any, built ones otherwise.
func ensureKubernetes(ctx context.Context, o Options, set *Set) error {
	module, err := openModule(ctx, filepath.Join(o.Source, "kubernetes"))
	if err != nil {
		return err
	}
	version, err := module.version(kubernetesModule)
	if err != nil {
		return err
	}
	etcdVersion, err := module.version("go.etcd.io/etcd/server/v3")
	if err != nil {
		return err
	}
	prebuilt := findPrebuilt(ctx, version, o.Progress)
	flags := []string{"-trimpath", "-ldflags", versionFlags(version)}
	for _, p := range []program{
		{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", estimate: "a minute", path: &set.Etcd},
		{name: "kube-apiserver", pkg: kubernetesModule + "/cmd/kube-apiserver", estimate: "5 minutes", path: &set.KubeAPIServer},
		{name: "kube-controller-manager", pkg: kubernetesModule + "/cmd/kube-controller-manager", estimate: "90 seconds", path: &set.KubeControllerManager},
		{name: "kubectl", pkg: kubernetesModule + "/cmd/kubectl", estimate: "20 seconds", path: &set.Kubectl},
	} {
		if path := prebuilt[p.name]; path != "" {
			*p.path = path
			continue
		}
		a := artifact{
			name:     p.name,
			version:  version,
			key:      cacheKey(append([]string{module.fingerprint, p.pkg}, flags...)...),
			estimate: p.estimate,
			make:     module.build(p.pkg, flags...),
		}
		if p.name == "etcd" {
			a.version = etcdVersion
		}
		if *p.path, err = ensure(ctx, o, a); err != nil {
			return err
		}
	}
	return nil
}

// versionFlags are the linker flags that tell the programs their version: without them clients are told v0.0.0.
func versionFlags(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", "k8s.io/component-base/version", version, major, minor)
}
