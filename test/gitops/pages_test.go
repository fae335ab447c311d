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

package gitops

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// manifests returns the objects of a page that have a kind.
func manifests(t *testing.T, page, kind string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "consumers", page))
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(text, -1) {
		for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(string(block[1]), -1) {
			o := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
				t.Fatalf("%s: %v in\n%s", page, err, document)
			}
			if o.GetKind() == kind {
				out = append(out, o)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s shows no %s", page, kind)
	}
	return out
}

// healthScript is the one that the page has people put into argocd-cm.
func healthScript(t *testing.T) health.HealthOverride {
	t.Helper()
	const prefix, kind = "resource.customizations.health.", "images.cozystack.io_WorkerImage"
	for _, configMap := range manifests(t, "argocd.md", "ConfigMap") {
		text, found, err := unstructured.NestedString(configMap.Object, "data", prefix+kind)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			return script{kind: kind, text: text}
		}
	}
	t.Fatalf("argocd.md shows no %s%s", prefix, kind)
	return nil
}
