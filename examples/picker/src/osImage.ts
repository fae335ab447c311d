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

import type { Json } from './api/mergePatch';
import type { PoolSpec } from './api/pools';
import type { Conflict } from './options/items';

const images = 'workerimage';
const schematics = 'workerimage-schematic';
const versions = 'workerimage-version';

/**
 * Tells which schematics and versions make no image with the other field of a pool's spec, or with the platform's
 * default where that is empty. Nothing is said of a value whose other half is not offered at all.
 */
export function imageConflict(spec: PoolSpec | undefined): Conflict {
  const { schematicID, version } = objectOf(objectOf(spec?.osImage).builtin);
  return (source, value, itemsOf) => {
    const offered = itemsOf(images);
    if (!offered || (source !== schematics && source !== versions)) {
      return undefined;
    }
    const isSchematic = source === schematics;
    const others = itemsOf(isSchematic ? versions : schematics) ?? [];
    const chosen = isSchematic ? version : schematicID;
    const other = others.find((item) => (chosen ? item.value === chosen : item.default))?.value;
    if (other === undefined) {
      return undefined;
    }
    const name = isSchematic ? nameOf(value, other) : nameOf(other, value);
    return offered.some((item) => item.value === name) ? undefined : other;
  };
}

/** The name of the image that a pool looks for. */
function nameOf(schematicID: string, version: string): string {
  return `talos-worker-${schematicID}-${version}`;
}

/**
 * Makes a spec name one origin of its image, as the platform wants it: what is chosen in builtin replaces the factory
 * that the stored pool has, and the factory comes back when that is taken out again.
 */
export function withOneOrigin(spec: PoolSpec, stored: PoolSpec | null | undefined): PoolSpec {
  const before = objectOf(stored?.osImage);
  if (before.factory === undefined || before.builtin !== undefined) {
    return spec;
  }
  const { builtin, factory: _, ...rest } = objectOf(spec.osImage);
  const isChosen = Object.values(objectOf(builtin)).some((value) => value !== undefined);
  return { ...spec, osImage: isChosen ? { ...rest, builtin } : { ...rest, factory: before.factory } };
}

export function hasFactory(spec: PoolSpec | null | undefined): boolean {
  return objectOf(spec?.osImage).factory !== undefined;
}

function objectOf(value: Json | undefined): { [key: string]: Json | undefined } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
