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

import type { KubernetesObject } from '../api/client';

/** One thing that can be chosen. */
export interface OptionItem {
  value: string;
  label?: string;
  description?: string;
  default?: boolean;
}

/** A list of things that can be chosen. Its name is what a schema calls the source. */
export interface Option extends KubernetesObject {
  spec?: { items?: OptionItem[] };
}

/** One line of a dropdown. */
export interface Choice {
  value: string;
  label: string;
  description?: string;
  offered: boolean;
  /** The value of another field with which this one cannot be combined, if there is one. */
  conflict?: string;
}

/**
 * Tells with which value of another field a value of a source cannot be combined: undefined where it can, or where that
 * is not known. itemsOf returns what a source offers, if that is known.
 */
export type Conflict = (
  source: string,
  value: string,
  itemsOf: (source: string) => readonly OptionItem[] | undefined,
) => string | undefined;

/** The source that a schema names for a field, if it does. */
export function sourceOf(schema: object): string | undefined {
  const extension = (schema as { 'x-cozystack-options'?: { source?: unknown } })['x-cozystack-options'];
  return typeof extension?.source === 'string' ? extension.source : undefined;
}

/**
 * The lines of a dropdown: what is offered, first what can be combined with the other fields, and after it the value
 * that the field has if that is not offered. As long as the items are not known, nothing can be said of that value.
 */
export function choicesFor(
  items: readonly OptionItem[] | undefined,
  value: string,
  conflictOf: (value: string) => string | undefined = () => undefined,
): Choice[] {
  const offers: Choice[] = (items ?? []).map((item) => ({
    value: item.value,
    label: item.label || item.value,
    description: item.description,
    offered: true,
    conflict: conflictOf(item.value),
  }));
  const choices = [
    ...offers.filter((choice) => choice.conflict === undefined),
    ...offers.filter((choice) => choice.conflict !== undefined),
  ];
  if (value !== '' && !choices.some((choice) => choice.value === value)) {
    choices.push(
      items
        ? { value, label: `${value} (not offered any more)`, offered: false }
        : { value, label: value, offered: true },
    );
  }
  return choices;
}

/**
 * The value to put into a field by itself, if any: the default, into the empty field of a new object, as long as
 * nothing has been put into it, or taken out, before.
 */
export function preselection(
  items: readonly OptionItem[],
  field: { value: string; isNew: boolean; touched: boolean },
): string | undefined {
  if (!field.isNew || field.touched || field.value !== '') {
    return undefined;
  }
  return items.find((item) => item.default)?.value;
}
