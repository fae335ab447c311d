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
	"github.com/hashicorp/terraform-plugin-framework/attr"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// computed is an attribute that the API fills in, for the schemas of data sources and of resources alike.
type computed struct {
	name        string
	description string
	// value is the type of an attribute without attributes of its own; nil is an object with the fields.
	value  attr.Type
	fields []computed
	// many makes a list, and keyed a map, of objects.
	many, keyed bool
}

// dataSourceAttributes adds computed attributes to those of a data source.
func dataSourceAttributes(attributes map[string]datasource.Attribute, all []computed) map[string]datasource.Attribute {
	for _, c := range all {
		attributes[c.name] = c.dataSource()
	}
	return attributes
}

func (c computed) dataSource() datasource.Attribute {
	if c.value == nil {
		fields := dataSourceAttributes(map[string]datasource.Attribute{}, c.fields)
		object := datasource.NestedAttributeObject{Attributes: fields}
		switch {
		case c.many:
			return datasource.ListNestedAttribute{Computed: true, MarkdownDescription: c.description, NestedObject: object}
		case c.keyed:
			return datasource.MapNestedAttribute{Computed: true, MarkdownDescription: c.description, NestedObject: object}
		}
		return datasource.SingleNestedAttribute{Computed: true, MarkdownDescription: c.description, Attributes: fields}
	}
	switch value := c.value.(type) {
	case types.ListType:
		return datasource.ListAttribute{Computed: true, MarkdownDescription: c.description, ElementType: value.ElemType}
	case types.MapType:
		return datasource.MapAttribute{Computed: true, MarkdownDescription: c.description, ElementType: value.ElemType}
	}
	switch c.value {
	case types.Int64Type:
		return datasource.Int64Attribute{Computed: true, MarkdownDescription: c.description}
	case types.BoolType:
		return datasource.BoolAttribute{Computed: true, MarkdownDescription: c.description}
	}
	return datasource.StringAttribute{Computed: true, MarkdownDescription: c.description}
}

// resourceAttributes adds computed attributes to those of a resource.
func resourceAttributes(attributes map[string]resource.Attribute, all []computed) map[string]resource.Attribute {
	for _, c := range all {
		attributes[c.name] = c.resource()
	}
	return attributes
}

func (c computed) resource() resource.Attribute {
	if c.value == nil {
		fields := resourceAttributes(map[string]resource.Attribute{}, c.fields)
		object := resource.NestedAttributeObject{Attributes: fields}
		switch {
		case c.many:
			return resource.ListNestedAttribute{Computed: true, MarkdownDescription: c.description, NestedObject: object}
		case c.keyed:
			return resource.MapNestedAttribute{Computed: true, MarkdownDescription: c.description, NestedObject: object}
		}
		return resource.SingleNestedAttribute{Computed: true, MarkdownDescription: c.description, Attributes: fields}
	}
	switch value := c.value.(type) {
	case types.ListType:
		return resource.ListAttribute{Computed: true, MarkdownDescription: c.description, ElementType: value.ElemType}
	case types.MapType:
		return resource.MapAttribute{Computed: true, MarkdownDescription: c.description, ElementType: value.ElemType}
	}
	switch c.value {
	case types.Int64Type:
		return resource.Int64Attribute{Computed: true, MarkdownDescription: c.description}
	case types.BoolType:
		return resource.BoolAttribute{Computed: true, MarkdownDescription: c.description}
	}
	return resource.StringAttribute{Computed: true, MarkdownDescription: c.description}
}

// objectType is the type of an object with the attributes.
func objectType(all []computed) types.ObjectType {
	attributes := map[string]attr.Type{}
	for _, c := range all {
		attributes[c.name] = c.dataSource().GetType()
	}
	return types.ObjectType{AttrTypes: attributes}
}
