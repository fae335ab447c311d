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

package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	goldenName     = "talos-worker-aaa-v1.13.6"
	goldenManifest = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  name: talos-worker-aaa-v1.13.6
  namespace: cozy-public
status:
  phase: Succeeded
`
	claimManifest = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: talos-worker-aaa-v1.13.6
  namespace: cozy-public
spec:
  resources:
    requests:
      storage: 6Gi
`
)

func write(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// names of what was read, sorted.
func names(c *content) []string {
	var out []string
	for i := range c.objects {
		out = append(out, i.String())
	}
	slices.Sort(out)
	return out
}

func TestAnObjectIsReadFromEveryPlace(t *testing.T) {
	folder := t.TempDir()
	inFolder := write(t, folder, "deep/down/golden.yml", goldenManifest)
	for place, paths := range map[string][]string{
		"a folder":       {folder},
		"a file":         {inFolder},
		"both of them":   {folder, inFolder},
		"standard input": {"-"},
	} {
		t.Run(place, func(t *testing.T) {
			c, err := read(paths, []byte(goldenManifest))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"DataVolume cozy-public/" + goldenName}, names(c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryFormOfManifestsIsRead(t *testing.T) {
	const both = "DataVolume cozy-public/d,PersistentVolumeClaim cozy-public/p"
	tests := map[string]struct{ content, want string }{
		"several documents": {
			content: "# a comment\n---\n" + goldenManifest + "\n---\n# another\n---\n" + claimManifest + "---\n",
			want:    "DataVolume cozy-public/" + goldenName + ",PersistentVolumeClaim cozy-public/" + goldenName,
		},
		"a list as kubectl prints it": {
			content: `
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: d, namespace: cozy-public}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: cozy-public}}
`,
			want: both,
		},
		"a list of one kind as a server sends it": {
			content: `{"apiVersion":"v1","kind":"PersistentVolumeClaimList","items":[{"metadata":{"name":"p","namespace":"cozy-public"}}]}`,
			want:    "PersistentVolumeClaim cozy-public/p",
		},
		"JSON documents one after the other": {
			content: `{"apiVersion":"cdi.kubevirt.io/v1beta1","kind":"DataVolume","metadata":{"name":"d","namespace":"cozy-public"}}
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"p","namespace":"cozy-public"}}`,
			want: both,
		},
		"every kind that matters": {
			content: `
{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: a}}
---
{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: a}}
---
{apiVersion: cdi.kubevirt.io/v1beta1, kind: CDI, metadata: {name: a}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a, namespace: ignored}}
---
{apiVersion: apps.cozystack.io/v1alpha1, kind: KubernetesNodes, metadata: {name: a}}
`,
			want: "CDI a,DataVolume default/a,KubernetesNodes default/a,PersistentVolumeClaim default/a,StorageClass a,StorageProfile a",
		},
		"nothing":               {content: ""},
		"nothing but a comment": {content: "# nothing\n"},
		"an empty list":         {content: "apiVersion: v1\nkind: List\nitems: []\n"},
	}
	for form, tc := range tests {
		t.Run(form, func(t *testing.T) {
			c, err := read([]string{"-"}, []byte(tc.content))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(names(c), ",")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOtherKindsAreIgnoredAndCounted(t *testing.T) {
	c, err := read([]string{"-"}, []byte(goldenManifest+`
---
{apiVersion: v1, kind: Pod, metadata: {name: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}}
---
{apiVersion: cdi.kubevirt.io/v1alpha1, kind: DataVolume, metadata: {name: of-another-version}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.objects) != 1 {
		t.Errorf("read %v", names(c))
	}
	if diff := cmp.Diff([]string{"1 DataVolume.cdi.kubevirt.io", "2 Pod"}, ignored(c)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyManifestsOfAFolderAreRead(t *testing.T) {
	folder := t.TempDir()
	for n, name := range []string{"a.yaml", "b.yml", "c.json", "readme.md", ".hidden.yaml", ".git/d.yaml", "e.yaml~"} {
		write(t, folder, name, fmt.Sprintf(`{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"%d"}}`, n))
	}
	c, err := read([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"StorageClass 0", "StorageClass 1", "StorageClass 2"}, names(c)); diff != "" {
		t.Error(diff)
	}
}

func TestAnErrorNamesTheFileTheDocumentAndWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"YAML that does not parse": {goldenManifest + "\n---\na: [b\n", "file.yaml, document 2: "},
		"an object without a kind": {"# a comment\n---\na: b\n", "file.yaml, document 1: Object 'Kind' is missing"},
		"a text":                   {"just a text\n", "file.yaml, document 1: "},
		"an object without a name": {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {}}", "document 1: a PersistentVolumeClaim has no name"},
		"an object of the wrong type": {
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: much}}}}",
			"document 1: PersistentVolumeClaim default/a: quantities must match",
		},
		"an item of a list":         {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: PersistentVolumeClaim}]}", "document 1: item 2: a PersistentVolumeClaim has no name"},
		"a name that is not a text": {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: [a]}}", "document 1: a PersistentVolumeClaim has no name"},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			path := write(t, t.TempDir(), "file.yaml", tc.content)
			_, err := read([]string{path}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("error %q lacks %q", err, tc.want)
			}
		})
	}
}

func TestAPathThatDoesNotExistIsAnError(t *testing.T) {
	if _, err := read([]string{filepath.Join(t.TempDir(), "nowhere")}, nil); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error %v", err)
	}
}

func TestALinkThatLeadsNowhereIsAnError(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(folder, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := read([]string{folder}, nil); err == nil || !strings.Contains(err.Error(), "link.yaml") {
		t.Errorf("error %v", err)
	}
}

func TestStandardInputThatBreaksIsAnError(t *testing.T) {
	broken := errors.New("the other end of the pipe is gone")
	_, err := Open(t.Context(), []string{"-"}, iotest.ErrReader(broken))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("error %v", err)
	}
}

func TestAnObjectThatIsThereTwiceIsAnErrorThatNamesBothPlaces(t *testing.T) {
	folder := t.TempDir()
	one := write(t, folder, "one.yaml", claimManifest+"\n---\n"+goldenManifest)
	two := write(t, folder, "two.yaml", goldenManifest)
	_, err := read([]string{folder}, nil)
	want := fmt.Sprintf("%s, document 1: DataVolume cozy-public/%s is already in %s, document 2", two, goldenName, one)
	if err == nil || err.Error() != want {
		t.Errorf("error %v instead of %s", err, want)
	}
}

func TestAnObjectWithoutAUIDGetsOneThatStays(t *testing.T) {
	uids := func() map[string]bool {
		c, err := read([]string{"-"}, []byte(goldenManifest+"\n---\n"+claimManifest+"\n---\n"+strings.ReplaceAll(goldenManifest, "aaa", "bbb")))
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, o := range c.objects {
			out[string(o.GetUID())] = true
		}
		return out
	}
	first := uids()
	if len(first) != 3 || first[""] {
		t.Errorf("uids are %v", slices.Collect(maps.Keys(first)))
	}
	if diff := cmp.Diff(first, uids()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAnObjectSaysItselfStays(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
		"metadata": map[string]any{"name": "a", "namespace": "b", "uid": "c", "creationTimestamp": "2026-11-30T20:27:10Z"},
		"status":   "of the wrong type",
	}}
	want := u.DeepCopy()
	_, got, err := objectFrom(u)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(want), got); diff != "" {
		t.Error(diff)
	}
}
