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

import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import type { KubernetesObject } from './client';
import { follow } from './follow';

const list = (resourceVersion: string, ...names: string[]) => ({
  metadata: { resourceVersion },
  items: names.map((name) => ({ metadata: { name } })),
});
const event = (type: string, name: string, resourceVersion: string) =>
  `${JSON.stringify({ type, object: { metadata: { name, resourceVersion } } })}\n`;
const expired = `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old' } })}\n`;

const answer = vi.fn<(url: string) => Response>();

beforeEach(() => {
  vi.stubGlobal('fetch', async (url: string) => answer(url));
});
afterEach(() => {
  vi.unstubAllGlobals();
  answer.mockReset();
});

/** Follows /things until the answers, in this order, are used up. */
async function followThrough(...answers: (() => Response)[]) {
  const controller = new AbortController();
  const requests: string[] = [];
  const seen: string[] = [];
  const pauses: number[] = [];
  answer.mockImplementation((url) => {
    requests.push(url);
    return answers.shift()!();
  });
  const follower = {
    onObjects: (objects: ReadonlyMap<string, KubernetesObject>) => seen.push([...objects.keys()].join()),
    onError: (error: Error) => seen.push(error.message),
  };
  await follow('/things', follower, controller.signal, async (milliseconds) => {
    pauses.push(milliseconds);
    if (answers.length === 0) {
      controller.abort();
    }
  });
  return { requests, seen, pauses };
}

const watchFrom = (resourceVersion: string) =>
  `/things?watch=1&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`;

it('goes on from where a watch ended', async () => {
  const { requests, seen } = await followThrough(
    () => Response.json(list('5', 'a')),
    () => new Response(event('ADDED', 'b', '6') + event('BOOKMARK', '', '9')),
    () => new Response(event('DELETED', 'a', '10')),
  );
  expect(requests).toEqual(['/things', watchFrom('5'), watchFrom('9')]);
  expect(seen).toEqual(['a', 'a,b', 'b']);
});

it.each([
  ['an event', () => new Response(expired)],
  ['the answer', () => Response.json({ kind: 'Status', message: 'too old' }, { status: 410 })],
])('lists anew, and tells nobody, when %s says that its resourceVersion is gone', async (_, gone) => {
  const { requests, seen } = await followThrough(
    () => Response.json(list('5', 'a')),
    gone,
    () => Response.json(list('20', 'b')),
    () => new Response(''),
  );
  expect(requests).toEqual(['/things', watchFrom('5'), '/things', watchFrom('20')]);
  expect(seen).toEqual(['a', 'b']);
});

it('reports what goes wrong, waits longer each time, and lists anew', async () => {
  const down = () => new Response('the API server does not answer', { status: 502 });
  const { requests, seen, pauses } = await followThrough(
    down,
    down,
    down,
    () => Response.json(list('5', 'a')),
    () => new Response(event('ADDED', 'b', '6')),
  );
  expect(requests).toEqual(['/things', '/things', '/things', '/things', watchFrom('5')]);
  expect(seen).toEqual([...Array(3).fill('the API server does not answer'), 'a', 'a,b']);
  expect(pauses).toEqual([1000, 2000, 4000, 1000]);
});
