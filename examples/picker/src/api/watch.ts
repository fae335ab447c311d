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

import { ApiError, type KubernetesObject, type ObjectMeta, type Status } from './client';

/** All objects of a collection by name, as of a resourceVersion. */
export interface Collection<T> {
  resourceVersion: string;
  objects: ReadonlyMap<string, T>;
}

export interface List<T> {
  metadata: Pick<ObjectMeta, 'resourceVersion'>;
  items: T[];
}

export type WatchEvent<T> =
  { type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; object: T } | { type: 'ERROR'; object: Status };

export function fromList<T extends KubernetesObject>(list: List<T>): Collection<T> {
  return {
    resourceVersion: list.metadata.resourceVersion ?? '',
    objects: new Map(list.items.map((object) => [object.metadata.name, object])),
  };
}

/**
 * Takes one event into a collection. A bookmark changes the resourceVersion and leaves the very same objects; an error
 * is thrown.
 */
export function reduce<T extends KubernetesObject>(collection: Collection<T>, event: WatchEvent<T>): Collection<T> {
  if (event.type === 'ERROR') {
    throw ApiError.fromStatus(event.object);
  }
  const { name, resourceVersion = collection.resourceVersion } = event.object.metadata;
  if (event.type === 'BOOKMARK') {
    return { ...collection, resourceVersion };
  }
  const objects = new Map(collection.objects);
  if (event.type === 'DELETED') {
    objects.delete(name);
  } else {
    objects.set(name, event.object);
  }
  return { resourceVersion, objects };
}

/** Yields the JSON documents of a body that holds one in each line. */
export async function* documents<T>(body: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const lines = (rest + decoder.decode(chunk.value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        yield JSON.parse(line) as T;
      }
    }
  } finally {
    await reader.cancel();
  }
}
