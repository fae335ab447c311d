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

import Form from '@rjsf/core';
import type { RJSFSchema, UiSchema } from '@rjsf/utils';
import validator from '@rjsf/validator-ajv8';

import type { PoolSpec } from './api/pools';
import schema from './kubernetesnodes.schema.json';
import { OptionsStringField } from './options/OptionsStringField';

const fields = { StringField: OptionsStringField };
const uiSchema: UiSchema = {
  'ui:submitButtonOptions': { norender: true },
  osImage: { builtin: { 'ui:label': false } },
};
const uiSchemaWithFactory: UiSchema = {
  ...uiSchema,
  osImage: {
    ...uiSchema.osImage,
    'ui:description': 'Workers fetch their image from a factory. What is chosen here replaces that.',
  },
};

interface Props {
  id: string;
  spec: PoolSpec | undefined;
  isNew: boolean;
  /** Whether the pool names a factory for its image, of which the form shows nothing. */
  hasFactory: boolean;
  disabled: boolean;
  onChange(spec: PoolSpec): void;
  onSubmit(spec: PoolSpec): void;
}

/** The form of a pool's spec. What the schema does not know stays in the spec as it is. */
export function PoolForm({ id, spec, isNew, hasFactory, disabled, onChange, onSubmit }: Props) {
  return (
    <Form
      id={id}
      idPrefix="spec"
      schema={schema as RJSFSchema}
      uiSchema={hasFactory ? uiSchemaWithFactory : uiSchema}
      validator={validator}
      fields={fields}
      formData={spec}
      disabled={disabled}
      showErrorList={false}
      // An existing pool that says nothing of a field must not begin to: osImage.builtin: {} would change its image.
      experimental_defaultFormStateBehavior={{
        emptyObjectFields: isNew ? 'populateAllDefaults' : 'skipDefaults',
      }}
      onChange={(event) => onChange(event.formData ?? {})}
      onSubmit={(event) => onSubmit(event.formData ?? {})}
    />
  );
}
