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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cozystack/workerimage-apiserver/test/objects"
)

const examples = root + "/terraform/examples"

func TestExamplesAreFormatted(t *testing.T) {
	p := newPlatform(t)
	path, err := filepath.Abs(examples)
	if err != nil {
		t.Fatal(err)
	}
	newWorkspace(t, p, "").run(t, "fmt", "-check", "-recursive", path)
}

// TestExamplesAreAppliedAsWritten applies and destroys each example, on the samples of `make stack`. The pages of data
// sources and resources leave out what the page of the provider has.
func TestExamplesAreAppliedAsWritten(t *testing.T) {
	p := newPlatform(t)
	p.awaitReady(t, objects.NameOf("gpu-nvidia"))
	begin := read(t, filepath.Join(examples, "provider", "provider.tf"))
	found, err := filepath.Glob(filepath.Join(examples, "*", "*", "*.tf"))
	if err != nil || len(found) == 0 {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, example := range found {
		t.Run(filepath.Base(filepath.Dir(example)), func(t *testing.T) {
			config := read(t, example)
			if !strings.Contains(config, "required_providers") {
				config = begin + config
			}
			w := newWorkspace(t, p, config)
			w.apply(t)
			w.planIsEmpty(t)
			w.run(t, "destroy", "-auto-approve")
		})
	}
}

func read(t *testing.T, example string) string {
	t.Helper()
	content, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
