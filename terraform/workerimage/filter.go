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
	"fmt"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/selection"
)

const constraintDescription = "Constraint on the version, such as `~> 1.13.0` or `>= 1.12.0, < 1.14.0`. Pre-releases match only a constraint that names one."

func constraintAttribute(validators ...validator.String) schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: constraintDescription,
		Validators:          append([]validator.String{constraintValidator{}}, validators...),
	}
}

// filterAttribute is an optional text that is not empty.
func filterAttribute(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: description,
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
	}
}

// newQuery is called with values that the validators have passed.
func newQuery(schematicID, exactVersion, constraint, storageClass types.String, readyOnly, mostRecent types.Bool) (selection.Query, error) {
	constraints, err := parseConstraint(constraint)
	return selection.Query{
		SchematicID:  schematicID.ValueString(),
		Version:      exactVersion.ValueString(),
		Constraints:  constraints,
		StorageClass: storageClass.ValueString(),
		ReadyOnly:    readyOnly.ValueBool(),
		MostRecent:   mostRecent.ValueBool(),
	}, err
}

func parseConstraint(constraint types.String) (version.Constraints, error) {
	if constraint.ValueString() == "" {
		return nil, nil
	}
	return version.NewConstraint(constraint.ValueString())
}

// constraintValidator accepts what can be parsed.
type constraintValidator struct{}

func (constraintValidator) Description(context.Context) string {
	return "value must be a version constraint"
}

func (v constraintValidator) MarkdownDescription(ctx context.Context) string {
	return v.Description(ctx)
}

func (constraintValidator) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	text := request.ConfigValue.ValueString()
	if constraints, err := version.NewConstraint(text); err != nil || len(constraints) == 0 {
		response.Diagnostics.AddAttributeError(request.Path, "Not a version constraint",
			fmt.Sprintf("%q is no constraint such as \"~> 1.13.0\" or \">= 1.12.0, < 1.14.0\".", text))
	}
}
