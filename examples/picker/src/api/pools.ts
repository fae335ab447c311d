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

import { ApiError, type KubernetesObject, sendJSON } from './client';
import { type Json, mergePatch } from './mergePatch';

export type PoolSpec = { [key: string]: Json | undefined };

export interface Pool extends KubernetesObject {
  spec?: PoolSpec | null;
}

interface APIResourceList {
  resources: { name: string; kind: string }[];
}

const groupVersion = 'apps.cozystack.io/v1alpha1';
const kind = 'KubernetesNodes';

/** The pools of a namespace. */
export class Pools {
  private constructor(
    private readonly url: string,
    private readonly namespace: string,
  ) {}

  /** Finds the resource by its kind: the platform chooses its plural at run time. */
  static async discover(namespace: string): Promise<Pools> {
    const list = await sendJSON<APIResourceList>(`/apis/${groupVersion}`);
    const resource = list.resources.find((r) => r.kind === kind && !r.name.includes('/'));
    if (!resource) {
      throw new ApiError(`the API server does not serve the kind ${kind}`, 404);
    }
    return new Pools(`/apis/${groupVersion}/namespaces/${namespace}/${resource.name}`, namespace);
  }

  get(name: string): Promise<Pool> {
    return sendJSON(this.urlOf(name));
  }

  create(name: string, spec: PoolSpec): Promise<Pool> {
    const pool = { apiVersion: groupVersion, kind, metadata: { name, namespace: this.namespace }, spec };
    return this.write(this.url, 'POST', 'application/json', pool);
  }

  /** Changes what differs from the pool that was read, if nobody has changed that pool since. */
  update(pool: Pool, spec: PoolSpec): Promise<Pool> {
    const { name, resourceVersion } = pool.metadata;
    const patch = { metadata: { resourceVersion }, spec: mergePatch(pool.spec, spec) };
    return this.write(this.urlOf(name), 'PATCH', 'application/merge-patch+json', patch);
  }

  private urlOf(name: string): string {
    return `${this.url}/${encodeURIComponent(name)}`;
  }

  private write(url: string, method: string, contentType: string, body: unknown): Promise<Pool> {
    return sendJSON(url, { method, headers: { 'Content-Type': contentType }, body: JSON.stringify(body) });
  }
}
