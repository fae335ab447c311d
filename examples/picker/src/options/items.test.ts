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

import { describe, expect, it } from 'vitest';

import { choicesFor, type OptionItem, preselection, sourceOf } from './items';

const items: OptionItem[] = [
  { value: 'abc', label: 'ABC (importing)', description: 'Schematic abc' },
  { value: 'def', default: true },
];

describe('the source of a field', () => {
  it('is the one its schema names', () => {
    expect(sourceOf({ type: 'string', 'x-cozystack-options': { source: 'sizes' } })).toBe('sizes');
  });
  it.each([{ type: 'string' }, { 'x-cozystack-options': {} }, { 'x-cozystack-options': { source: 7 } }])(
    'is none for %j',
    (schema) => {
      expect(sourceOf(schema)).toBeUndefined();
    },
  );
});

describe('the choices', () => {
  it('are the items in their order, a value standing in for a label', () => {
    expect(choicesFor(items, 'abc')).toEqual([
      { value: 'abc', label: 'ABC (importing)', description: 'Schematic abc', offered: true },
      { value: 'def', label: 'def', description: undefined, offered: true },
    ]);
  });
  it('have what cannot be combined with another field at the end, and say with what', () => {
    const conflictOf = (value: string) => (value === 'abc' ? 'v1' : undefined);
    expect(choicesFor(items, 'abc', conflictOf)).toMatchObject([
      { value: 'def', conflict: undefined },
      { value: 'abc', conflict: 'v1', offered: true },
    ]);
  });
  it('keep a value that is not offered, and say so', () => {
    expect(choicesFor(items, 'old').at(-1)).toEqual({
      value: 'old',
      label: 'old (not offered any more)',
      offered: false,
    });
  });
  it('keep a value when nothing is offered at all', () => {
    expect(choicesFor([], 'old')).toHaveLength(1);
  });
  it('say nothing of a value before the items are known', () => {
    expect(choicesFor(undefined, 'old')).toEqual([{ value: 'old', label: 'old', offered: true }]);
  });
  it('have no line for an empty field', () => {
    expect(choicesFor(items, '')).toHaveLength(2);
  });
});

describe('the default', () => {
  const empty = { value: '', isNew: true, touched: false };

  it('is put into the empty field of a new object', () => {
    expect(preselection(items, empty)).toBe('def');
  });
  it.each([
    ['a field that has a value', { ...empty, value: 'abc' }],
    ['a field that was cleared', { ...empty, touched: true }],
    ['an object that exists', { ...empty, isNew: false }],
  ])('is not put into %s', (_, field) => {
    expect(preselection(items, field)).toBeUndefined();
  });
  it('is nothing where no item is the default', () => {
    expect(preselection([{ value: 'abc' }], empty)).toBeUndefined();
  });
});
