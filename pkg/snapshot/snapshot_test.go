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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

const goldenManifest = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  name: talos-worker-aaa-v1.13.6
  namespace: cozy-public
status:
  phase: Succeeded
`

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

func TestAnObjectIsReadFromEveryPlace(t *testing.T) {
	folder := t.TempDir()
	name := types.NamespacedName{Namespace: "cozy-public", Name: "talos-worker-aaa-v1.13.6"}
	inFolder := write(t, folder, "deep/down/golden.yml", goldenManifest)
	for place, paths := range map[string][]string{
		"a folder":       {folder},
		"a file":         {inFolder},
		"both of them":   {folder, inFolder},
		"standard input": {"-"},
	} {
		t.Run(place, func(t *testing.T) {
			s, err := Open(t.Context(), paths, strings.NewReader(goldenManifest))
			if err != nil {
				t.Fatal(err)
			}
			if s.dataVolumes.objects[name] == nil {
				t.Errorf("no %s in %v", name, s.dataVolumes.objects)
			}
		})
	}
}
