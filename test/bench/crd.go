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

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// customResource is the definition of the same kind as a custom resource. Its schema is the one that the server
// publishes, and its columns are the server's.
func (b *bench) customResource(ctx context.Context) (*unstructured.Unstructured, error) {
	document, err := b.askServer(ctx, "/openapi/v3/apis/"+servedGroup+"/"+version)
	if err != nil {
		return nil, err
	}
	var published struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &published); err != nil {
		return nil, err
	}
	for name, schema := range published.Components.Schemas {
		if strings.HasSuffix(name, "."+version+".WorkerImage") {
			s := structural(schema, published.Components.Schemas)
			s["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
			return definition(s), nil
		}
	}
	return nil, fmt.Errorf("no schema of WorkerImage is published")
}

const schemaReference = "#/components/schemas/"

// structural resolves references, and keeps what a custom resource may have.
func structural(schema map[string]any, all map[string]map[string]any) map[string]any {
	for _, part := range append([]any{schema}, asSlice(schema["allOf"])...) {
		if ref, ok := part.(map[string]any)["$ref"].(string); ok {
			return structural(all[strings.TrimPrefix(ref, schemaReference)], all)
		}
	}
	out := map[string]any{}
	for _, keyword := range []string{"type", "format", "required", "enum"} {
		if value, ok := schema[keyword]; ok {
			out[keyword] = value
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		resolved := map[string]any{}
		for name, property := range properties {
			resolved[name] = structural(property.(map[string]any), all)
		}
		out["properties"] = resolved
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if nested, ok := schema[keyword].(map[string]any); ok {
			out[keyword] = structural(nested, all)
		}
	}
	return out
}

func asSlice(value any) []any {
	slice, _ := value.([]any)
	return slice
}

func definition(schema map[string]any) *unstructured.Unstructured {
	column := func(name, kind, path string, priority int64) any {
		return map[string]any{"name": name, "type": kind, "jsonPath": path, "priority": priority}
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "workerimages."+storedGroup, map[string]any{
		"spec": map[string]any{
			"group": storedGroup,
			"scope": "Cluster",
			"names": map[string]any{"kind": "WorkerImage", "listKind": "WorkerImageList", "plural": "workerimages", "singular": "workerimage"},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema":       map[string]any{"openAPIV3Schema": schema},
				"subresources": map[string]any{"status": map[string]any{}},
				"additionalPrinterColumns": []any{
					column("Version", "string", ".spec.version", 0),
					column("Phase", "string", ".status.phase", 0),
					column("Progress", "integer", ".status.progress", 0),
					column("StorageClass", "string", ".status.storageClass.effective", 0),
					column("Size", "string", ".status.storage.requested", 0),
					column("Pools", "integer", ".status.poolCount", 0),
					column("Age", "date", ".metadata.creationTimestamp", 0),
					column("Schematic", "string", ".spec.schematicID", 1),
					column("Clone", "string", ".status.cloneStrategy", 1),
					column("Declared", "boolean", ".status.catalog.declared", 1),
					column("Reason", "string", `.status.conditions[?(@.type=="Ready")].reason`, 1),
					column("Source", "string", ".status.source.url", 1),
				},
			}},
		},
	})
}
