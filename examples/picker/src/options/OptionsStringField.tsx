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
