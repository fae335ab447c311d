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

import { expect, it } from 'vitest';

import { mergePatch } from './mergePatch';

it('holds what was changed and added', () => {
  expect(mergePatch({ a: 1, b: { c: 1, d: 1 } }, { a: 1, b: { c: 2, d: 1 }, e: [1] })).toEqual({ b: { c: 2 }, e: [1] });
});

it('takes away what was cleared, and leaves the object around it', () => {
  expect(mergePatch({ b: { c: 'x' } }, { b: { c: undefined } })).toEqual({ b: { c: null } });
});

it('replaces a list as a whole', () => {
  expect(mergePatch({ a: [1, 2] }, { a: [2] })).toEqual({ a: [2] });
});

it('is empty when nothing was changed', () => {
  expect(mergePatch({ a: { b: [1, { c: null }] } }, { a: { b: [1, { c: null }] } })).toEqual({});
});

it('begins from nothing where there was no object', () => {
  expect(mergePatch(null, { a: 1 })).toEqual({ a: 1 });
});
