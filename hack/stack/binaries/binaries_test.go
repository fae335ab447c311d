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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrebuiltControlPlaneNeedsEtcdAndAPIServer(t *testing.T) {
	for name, test := range map[string]struct{ files, want []string }{
		"both and kubectl":               {[]string{"etcd", "kube-apiserver", "kubectl"}, []string{"etcd", "kube-apiserver", "kubectl"}},
		"all four":                       {[]string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}, []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}},
		"kubectl alone is not enough":    {[]string{"kubectl"}, nil},
		"without etcd it is not enough":  {[]string{"kube-apiserver", "kubectl"}, nil},
		"an empty directory has nothing": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(programsIn(dir)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("a file that cannot be run is none", func(t *testing.T) {
		dir := t.TempDir()
		for _, file := range []string{"etcd", "kube-apiserver"} {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if found := programsIn(dir); found != nil {
			t.Errorf("got %v", found)
		}
	})
}

func TestProgramsAreToldTheirVersion(t *testing.T) {
	flags := versionFlags("v1.37.2")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.2 ",
		"-X k8s.io/component-base/version.gitMajor=1 ",
		"-X k8s.io/component-base/version.gitMinor=37 ",
	} {
		if !strings.Contains(flags+" ", want) {
			t.Errorf("no %q in %q", want, flags)
		}
	}
}

func TestAnEditFitsExactlyOnePlace(t *testing.T) {
	edits := []edit{{`":8443"`, "address"}, {"readyFile", "ready"}}
	got, err := applyEdits(`listen(":8443"); create(readyFile)`, edits)
	if want := "listen(address); create(ready)"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for name, source := range map[string]string{
		"the place is gone":  `listen(":8443")`,
		"there are two":      `listen(":8443"); create(readyFile); remove(readyFile)`,
		"it was made before": got,
	} {
		if _, err := applyEdits(source, edits); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTheCacheIsWhereTheUserWantsIt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	t.Setenv("WORKERIMAGE_CACHE", "")
	if dir, err := DefaultCache(); err != nil || dir != "/xdg/workerimage-apiserver/stack" {
		t.Errorf("got %q, %v", dir, err)
	}
	t.Setenv("WORKERIMAGE_CACHE", "/mine")
	if dir, err := DefaultCache(); err != nil || dir != "/mine/workerimage-apiserver/stack" {
		t.Errorf("got %q, %v", dir, err)
	}
}

func TestTheControlPlaneIsOfTheMinorThatIsAskedFor(t *testing.T) {
	source := t.TempDir()
	for dir, version := range map[string]string{"kubernetes": "v1.37.2", "kubernetes-1.36": "v1.36.3", "kubernetes-1.35": "v1.34.4"} {
		writeModule(t, filepath.Join(source, dir), version)
	}
	for name, test := range map[string]struct {
		asked, want, refusal string
	}{
		"none is asked for":                       {asked: "", want: "v1.37.2"},
		"the default is asked for by its name":    {asked: "1.37", want: "v1.37.2"},
		"one that has a module of its own":        {asked: "1.36", want: "v1.36.3"},
		"one whose module has another":            {asked: "1.35", refusal: "kubernetes-1.35 in " + source + " has v1.34.4"},
		"one that nobody has":                     {asked: "1.30", refusal: "there is no Kubernetes 1.30"},
		"a version where a minor should be named": {asked: "1.36.3", refusal: "there is no Kubernetes 1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			module, version, err := openKubernetes(t.Context(), Options{Source: source, Kubernetes: test.asked})
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Errorf("got %v, want %q", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if required, err := module.version(kubernetesModule); version != test.want || required != test.want || err != nil {
				t.Errorf("got %s from a module with %s, %v; want %s", version, required, err, test.want)
			}
		})
	}
}

func writeModule(t *testing.T, dir, version string) {
	t.Helper()
	content := "module stack\n\ngo 1.26.0\n\nrequire " + kubernetesModule + " " + version + "\n"
	for name, content := range map[string]string{"go.mod": content, "go.sum": ""} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// KUBEBUILDER_ASSETS holds the programs of some version.
func TestAMinorThatIsAskedForIsNotTakenFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	t.Setenv("PATH", t.TempDir())
	o := options(t)
	if found := findPrebuilt(t.Context(), o, "v1.37.2"); found["kube-apiserver"] == "" {
		t.Error("the default is not taken from there either")
	}
	o.Kubernetes = "1.36"
	if found := findPrebuilt(t.Context(), o, "v1.36.3"); found != nil {
		t.Errorf("got %v", found)
	}
}
