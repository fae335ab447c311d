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

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestValuesThatAreRefused(t *testing.T) {
	for _, test := range []struct{ name, set, want string }{
		{"a value that there is not", "replica=3", "'replica' not allowed"},
		{"a value that there is not in a group", "shutdown.delay=3", "'delay' not allowed"},
		{"an image without a name", "image=", "/image"},
		{"a policy that there is not", "imagePullPolicy=Sometimes", "/imagePullPolicy"},
		{"fewer servers than none", "replicas=-1", "/replicas"},
		{"a quantity that is none", "resources.limits.memory=much", "/resources/limits/memory"},
		{"a claim on resources", "resources.claims=x", "'claims' not allowed"},
		{"a namespace that is none", "goldens.namespace=Cozy", "/goldens/namespace"},
		{"a version that names nothing", "platform.version=v1.13", "/platform/version"},
		{"a schematic that is none", "platform.schematicID=a_b", "/platform/schematicID"},
		{"an image that names no version", "catalog.document.images[0].schematicID=a", "'version'"},
		{"an entry of a catalog that means nothing", "catalog.document.image=a", "'image' not allowed"},
		{"a factory that is none", "catalog.document.imageFactoryURL=factory", "/catalog/document/imageFactoryURL"},
		{"a flag that is none", "extraArgs[0]=v=4", "/extraArgs/0"},
		{"a time that is none", "certificates.validity=1y", "/certificates/validity"},
		{"a format that there is not", "logFormat=xml", "/logFormat"},
		{"a shutdown without a moment to learn of it", "shutdown.preStopSeconds=0", "/shutdown/preStopSeconds"},
		{"a port that is none", "service.port=70000", "/service/port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := helm("template", name, chart, "--set", test.set)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %s", err, test.want)
			}
		})
	}
}

// schema is a part of a JSON schema.
type schema struct {
	Type                 any
	Properties           map[string]schema
	AdditionalProperties any
}

func TestTheSchemaHasTheValuesAndNoOthers(t *testing.T) {
	var values map[string]any
	var top schema
	content := read(t, "values.yaml")
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read(t, "values.schema.json"), &top); err != nil {
		t.Fatal(err)
	}
	// Helm gives this to every chart that is a part of another.
	delete(top.Properties, "global")
	compare(t, "", values, top)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// compare looks at groups of values, which are those whose members the schema names, and that are not empty by default.
func compare(t *testing.T, prefix string, values map[string]any, s schema) {
	t.Helper()
	if s.AdditionalProperties != false {
		t.Errorf("the schema allows more in %q", prefix)
	}
	for key, value := range values {
		property, known := s.Properties[key]
		if !known {
			t.Errorf("the schema has no %s%s", prefix, key)
		}
		group, isGroup := value.(map[string]any)
		if isGroup && len(group) > 0 && property.Properties != nil {
			compare(t, prefix+key+".", group, property)
		}
	}
	for key := range s.Properties {
		if _, known := values[key]; !known {
			t.Errorf("there is no value %s%s", prefix, key)
		}
	}
}
