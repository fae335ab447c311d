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

import { getDefaultRegistry } from '@rjsf/core';
import type { FieldProps } from '@rjsf/utils';

import { sourceOf } from './items';
import { OptionsWidget } from './OptionsWidget';

const StringField = getDefaultRegistry().fields.StringField!;

/** Draws every string whose schema has x-cozystack-options as a dropdown, and every other as usual. */
export function OptionsStringField(props: FieldProps) {
  if (sourceOf(props.schema) === undefined) {
    return <StringField {...props} />;
  }
  return <StringField {...props} uiSchema={{ ...props.uiSchema, 'ui:widget': OptionsWidget }} />;
}
