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

package workerimage

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// managed returns the values that the image has now for the keys that are managed.
func managed(ctx context.Context, keys types.Map, live map[string]string) (types.Map, diag.Diagnostics) {
	if keys.IsNull() {
		return keys, nil
	}
	values := map[string]string{}
	for key := range keys.Elements() {
		if value, found := live[key]; found {
			values[key] = value
		}
	}
	return types.MapValueFrom(ctx, types.StringType, values)
}

// texts returns the elements of a map that is known.
func texts(ctx context.Context, m types.Map, diagnostics *diag.Diagnostics) map[string]string {
	values := map[string]string{}
	if !m.IsNull() {
		diagnostics.Append(m.ElementsAs(ctx, &values, false)...)
	}
	return values
}

// metadataPatch leads from the managed keys of before to those of after, and leaves all others alone.
func metadataPatch(ctx context.Context, before, after imageResourceModel, diagnostics *diag.Diagnostics) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      changes(texts(ctx, before.Labels, diagnostics), texts(ctx, after.Labels, diagnostics)),
		"annotations": changes(texts(ctx, before.Annotations, diagnostics), texts(ctx, after.Annotations, diagnostics)),
	}})
	if err != nil {
		diagnostics.AddError("The labels and annotations cannot be encoded", err.Error())
	}
	return patch
}

// changes has null for what is to be removed.
func changes(before, after map[string]string) map[string]any {
	patch := map[string]any{}
	for key := range before {
		patch[key] = nil
	}
	for key, value := range after {
		patch[key] = value
	}
	return patch
}
