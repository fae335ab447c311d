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

const (
	kubernetesModule = "k8s.io/kubernetes"
	// defaultKubernetes is the directory of the module of the default minor. Those of other minors have theirs appended.
	defaultKubernetes = "kubernetes"
)

// program is a main package of a pinned module.
type program struct {
	name     string
	pkg      string
	estimate string
	path     *string
}

// ensureKubernetes fills in the control plane: prebuilt programs where there are any, built ones otherwise.
func ensureKubernetes(ctx context.Context, o Options, set *Set) error {
	module, version, err := openKubernetes(ctx, o)
	if err != nil {
		return err
	}
	etcdVersion, err := module.version("go.etcd.io/etcd/server/v3")
	if err != nil {
		return err
	}
	prebuilt := findPrebuilt(ctx, o, version)
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

// openKubernetes opens the module of the control plane that is asked for: its own if that minor has one, else the default
// if that is of this minor.
func openKubernetes(ctx context.Context, o Options) (*module, string, error) {
	dir := defaultKubernetes
	if own := defaultKubernetes + "-" + o.Kubernetes; o.Kubernetes != "" && exists(filepath.Join(o.Source, own)) {
		dir = own
	}
	module, err := openModule(ctx, filepath.Join(o.Source, dir))
	if err != nil {
		return nil, "", err
	}
	version, err := module.version(kubernetesModule)
	if err != nil {
		return nil, "", err
	}
	if o.Kubernetes != "" && o.Kubernetes != minorOf(version) {
		return nil, "", fmt.Errorf("there is no Kubernetes %s: %s in %s has %s", o.Kubernetes, dir, o.Source, version)
	}
	return module, version, nil
}

// minorOf is the minor of a version as users name it: 1.37 of v1.37.2.
func minorOf(version string) string {
	return version[1:strings.LastIndex(version, ".")]
}

// versionFlags are the linker flags that tell the programs their version: without them clients are told v0.0.0.
func versionFlags(version string) string {
	major, minor, _ := strings.Cut(minorOf(version), ".")
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", "k8s.io/component-base/version", version, major, minor)
}
