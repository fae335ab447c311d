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

import { ApiError, type KubernetesObject } from './client';
import { type Collection, documents, fromList, reduce, type WatchEvent } from './watch';

interface Thing extends KubernetesObject {
  color?: string;
}

const thing = (name: string, resourceVersion: string, color?: string): Thing => ({
  metadata: { name, resourceVersion },
  color,
});

describe('a collection', () => {
  const listed: Collection<Thing> = fromList({
    metadata: { resourceVersion: '10' },
    items: [thing('a', '3', 'red'), thing('b', '7', 'blue')],
  });

  it('begins with what was listed', () => {
    expect(listed.resourceVersion).toBe('10');
    expect([...listed.objects.keys()]).toEqual(['a', 'b']);
  });
  it('takes in what was added', () => {
    const next = reduce(listed, { type: 'ADDED', object: thing('c', '11') });
    expect(next.resourceVersion).toBe('11');
    expect([...next.objects.keys()]).toEqual(['a', 'b', 'c']);
  });
  it('replaces what was modified, and leaves the collection before it as it was', () => {
    const next = reduce(listed, { type: 'MODIFIED', object: thing('a', '12', 'green') });
    expect(next.objects.get('a')?.color).toBe('green');
    expect(listed.objects.get('a')?.color).toBe('red');
  });
  it('drops what was deleted', () => {
    const next = reduce(listed, { type: 'DELETED', object: thing('a', '13', 'red') });
    expect(next.resourceVersion).toBe('13');
    expect([...next.objects.keys()]).toEqual(['b']);
  });
  it('moves on with a bookmark, and keeps the very same objects', () => {
    const next = reduce(listed, { type: 'BOOKMARK', object: thing('', '20') });
    expect(next.resourceVersion).toBe('20');
    expect(next.objects).toBe(listed.objects);
  });
  it('ends with an error', () => {
    const event: WatchEvent<Thing> = { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old' } };
    expect(() => reduce(listed, event)).toThrow(new ApiError('too old', 410));
  });
});

describe('the documents of a body', () => {
  const read = async (...chunks: Uint8Array[]) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        chunks.forEach((chunk) => controller.enqueue(chunk));
        controller.close();
      },
    });
    const read = [];
    for await (const document of documents<{ a: string }>(body)) {
      read.push(document);
    }
    return read;
  };
  const bytes = new TextEncoder().encode('{"a":"x"}\n{"a":"\u00b7"}\n');

  it('may come together', async () => {
    expect(await read(bytes)).toEqual([{ a: 'x' }, { a: '\u00b7' }]);
  });
  it('may come in pieces that end within a line, or within a letter', async () => {
    const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect(await read(...pieces)).toEqual([{ a: 'x' }, { a: '\u00b7' }]);
  });
  it('do not include the piece of one at the end', async () => {
    expect(await read(bytes.slice(0, -3))).toEqual([{ a: 'x' }]);
  });
});
