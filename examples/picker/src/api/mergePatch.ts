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

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

/**
 * The JSON merge patch (RFC 7386) that turns one object into another. Fields that are in neither, or the same in both,
 * are not in it, so that what another client writes there stays.
 */
export function mergePatch(before: Json | undefined, after: Json | undefined): { [key: string]: Json } {
  const from = isObject(before) ? before : {};
  const to = isObject(after) ? after : {};
  const patch: { [key: string]: Json } = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [old, value] = [from[key], to[key]];
    if (isObject(old) && isObject(value)) {
      const inner = mergePatch(old, value);
      if (Object.keys(inner).length > 0) {
        patch[key] = inner;
      }
    } else if (JSON.stringify(old) !== JSON.stringify(value)) {
      patch[key] = value ?? null;
    }
  }
  return patch;
}

function isObject(value: Json | undefined): value is { [key: string]: Json | undefined } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
