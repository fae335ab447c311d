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

import { ariaDescribedByIds, type WidgetProps } from '@rjsf/utils';
import { useEffect, useRef } from 'react';

import { type Choice, choicesFor, preselection, sourceOf } from './items';
import { useOptions } from './OptionsProvider';

/**
 * A dropdown of what a source offers at present. Where the source has never been readable it is a text field, so that
 * whoever knows a value can still enter it.
 */
export function OptionsWidget(props: WidgetProps) {
  const { id, schema, required, disabled, readonly, onChange } = props;
  const { items, loading, problem, isNew, conflictOf } = useOptions(sourceOf(schema) ?? '');
  const touched = useRef(false);
  const value = typeof props.value === 'string' ? props.value : '';

  const choose = (chosen: string) => {
    touched.current = true;
    onChange(chosen === '' ? undefined : chosen);
  };

  useEffect(() => {
    const preselected = preselection(items ?? [], { value, isNew, touched: touched.current });
    if (preselected !== undefined) {
      choose(preselected);
    }
  });

  const control = {
    id,
    name: props.htmlName || id,
    className: 'form-control',
    required,
    disabled: disabled || readonly,
    value,
    'aria-describedby': ariaDescribedByIds(id),
    onChange: (event: { target: { value: string } }) => choose(event.target.value),
    onBlur: () => props.onBlur(id, value),
    onFocus: () => props.onFocus(id, value),
  };
  const choices = choicesFor(items, value, conflictOf);
  const conflict = choices.find((choice) => choice.conflict !== undefined)?.conflict;
  const chosen = choices.find((choice) => choice.value === value);
  return (
    <>
      {items || loading ? (
        <select {...control} title={chosen?.description} data-offered={chosen?.offered ?? true}>
          <option value="">{loading ? 'Loading…' : 'Not set'}</option>
          {choices.filter((choice) => choice.conflict === undefined).map(optionOf)}
          {conflict !== undefined && (
            <optgroup label={`Not with ${conflict}`}>
              {choices.filter((choice) => choice.conflict !== undefined).map(optionOf)}
            </optgroup>
          )}
        </select>
      ) : (
        <input type="text" {...control} />
      )}
      {chosen?.conflict !== undefined && (
        <p className="options-conflict">Not available together with {chosen.conflict}.</p>
      )}
      {problem && <p className="options-problem">{problem}</p>}
    </>
  );
}

function optionOf(choice: Choice) {
  return (
    <option key={choice.value} value={choice.value} title={choice.description} data-offered={choice.offered}>
      {choice.label}
    </option>
  );
}
