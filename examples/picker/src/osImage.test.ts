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

import type { OptionItem } from './options/items';
import { hasFactory, imageConflict, withOneOrigin } from './osImage';

const offers: Record<string, OptionItem[]> = {
  workerimage: [
    { value: 'talos-worker-base-v1.13.6', default: true },
    { value: 'talos-worker-edge-v1.13.6' },
    { value: 'talos-worker-edge-v1.12.8' },
  ],
  'workerimage-schematic': [{ value: 'base', default: true }, { value: 'edge' }],
  'workerimage-version': [{ value: 'v1.13.6', default: true }, { value: 'v1.12.8' }],
};
const itemsOf = (source: string) => offers[source];
const specOf = (builtin: Record<string, string | undefined>) => ({ osImage: { builtin } });

describe('a pair without an image', () => {
  const conflict = (builtin: Record<string, string | undefined>, source: string, value: string) =>
    imageConflict(specOf(builtin))(source, value, itemsOf);

  it('is told of a schematic by the version that was chosen', () => {
    expect(conflict({ version: 'v1.12.8' }, 'workerimage-schematic', 'base')).toBe('v1.12.8');
    expect(conflict({ version: 'v1.12.8' }, 'workerimage-schematic', 'edge')).toBeUndefined();
  });
  it('is told of a version by the schematic that was chosen', () => {
    expect(conflict({ schematicID: 'base' }, 'workerimage-version', 'v1.12.8')).toBe('base');
    expect(conflict({ schematicID: 'edge' }, 'workerimage-version', 'v1.12.8')).toBeUndefined();
  });
  it('is told by the default where the other field is empty', () => {
    expect(conflict({}, 'workerimage-version', 'v1.12.8')).toBe('base');
  });
  it('is not told where the other value is not offered, or no default is', () => {
    expect(conflict({ version: 'v1.0.0' }, 'workerimage-schematic', 'base')).toBeUndefined();
    const withoutDefault = (source: string) => offers[source]?.map(({ value }) => ({ value }));
    expect(imageConflict(undefined)('workerimage-version', 'v1.12.8', withoutDefault)).toBeUndefined();
  });
  it('is not told while images cannot be read, or of any other source', () => {
    expect(
      imageConflict(specOf({ version: 'v1.12.8' }))('workerimage-schematic', 'base', () => undefined),
    ).toBeUndefined();
    expect(conflict({ version: 'v1.12.8' }, 'storage-class', 'base')).toBeUndefined();
  });
});

describe('the origin of an image', () => {
  const factory = { url: 'https://factory.example.org' };
  const stored = { cluster: 'shop', osImage: { factory } };
  const builtin = { schematicID: 'edge', version: undefined };

  it('is builtin when something was chosen in it', () => {
    const chosen = withOneOrigin({ ...stored, osImage: { factory, builtin } }, stored);
    expect(chosen).toEqual({ cluster: 'shop', osImage: { builtin } });
    expect('factory' in (chosen.osImage as object)).toBe(false);
  });
  it('is the factory again when that was taken out', () => {
    const emptied = { ...stored, osImage: { builtin: { schematicID: undefined } } };
    expect(withOneOrigin(emptied, stored)).toEqual(stored);
  });
  it('stays as it is where there was no factory, or both', () => {
    const spec = { osImage: { builtin } };
    expect(withOneOrigin(spec, undefined)).toBe(spec);
    expect(withOneOrigin(spec, { osImage: {} })).toBe(spec);
    expect(withOneOrigin(spec, { osImage: { builtin: {}, factory } })).toBe(spec);
  });
  it('is known to be a factory', () => {
    expect(hasFactory(stored)).toBe(true);
    expect([undefined, null, {}, { osImage: null }].map(hasFactory)).toEqual([false, false, false, false]);
  });
});
