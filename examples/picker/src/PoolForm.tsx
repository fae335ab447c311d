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

interface Props {
  id: string;
  spec: PoolSpec | undefined;
  isNew: boolean;
  disabled: boolean;
  onChange(spec: PoolSpec): void;
  onSubmit(spec: PoolSpec): void;
}

/** The form of a pool's spec. What the schema does not know stays in the spec as it is. */
export function PoolForm({ id, spec, isNew, disabled, onChange, onSubmit }: Props) {
  return (
    <Form
      id={id}
      idPrefix="spec"
      schema={schema as RJSFSchema}
      uiSchema={uiSchema}
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
