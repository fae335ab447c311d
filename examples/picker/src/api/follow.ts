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

import { ApiError, type KubernetesObject, send, sendJSON } from './client';
import { type Collection, documents, fromList, type List, reduce, type WatchEvent } from './watch';

/** What to do with what is learnt of a collection. */
export interface Follower<T> {
  /** Called with all objects, first and after each change. */
  onObjects(objects: ReadonlyMap<string, T>): void;
  /** Called when the objects cannot be read for now; another attempt follows. */
  onError(error: Error): void;
}

const longestPause = 30_000;
const gone = 410;

/**
 * Lists a collection and watches it until the signal is aborted.
 *
 * The API server ends every watch after a while: the next one goes on from where it ended. Anything else that ends a
 * watch, a resourceVersion that the server no longer has (410) among them, begins again with a list. What was learnt
 * before stays valid until then.
 */
export async function follow<T extends KubernetesObject>(
  url: string,
  follower: Follower<T>,
  signal: AbortSignal,
  pause: (milliseconds: number, signal: AbortSignal) => Promise<void> = sleep,
): Promise<void> {
  let collection: Collection<T> | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      if (!collection) {
        collection = fromList(await sendJSON<List<T>>(url, { signal }));
        follower.onObjects(collection.objects);
      }
      for await (const event of watch<T>(url, collection.resourceVersion, signal)) {
        const next: Collection<T> = reduce(collection, event);
        if (next.objects !== collection.objects) {
          follower.onObjects(next.objects);
        }
        collection = next;
        failures = 0;
      }
      failures = 0;
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      collection = undefined;
      failures++;
      if (!(error instanceof ApiError && error.code === gone)) {
        follower.onError(error instanceof Error ? error : new Error(String(error)));
      }
    }
    await pause(Math.min(longestPause, 1000 * 2 ** Math.max(0, failures - 1)), signal);
  }
}

async function* watch<T>(url: string, resourceVersion: string, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
  const query = new URLSearchParams({ watch: '1', allowWatchBookmarks: 'true', resourceVersion });
  const response = await send(`${url}?${query}`, { signal });
  if (response.body) {
    yield* documents<WatchEvent<T>>(response.body);
  }
}

/** Waits, but no longer than until the signal is aborted. */
function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}
