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

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Pool, PoolSpec } from '../src/api/pools';
import type { Platform, StackState } from './platform';

export interface Image {
  schematicID: string;
  version: string;
}

/** The image of a pool that pins none. */
export const platformDefault: Image = {
  schematicID: 'ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515',
  version: 'v1.13.6',
};

/** What the administrator of the cluster does in it. */
export class Cluster {
  constructor(private readonly platform: Platform) {}

  /** Begins the import of an image. One whose schematic id begins with "stuck" goes on only after releaseImports. */
  async importImage({ schematicID, version }: Image): Promise<void> {
    await this.apply({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: {
        name: nameOf({ schematicID, version }),
        namespace: 'cozy-public',
        annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' },
      },
      spec: {
        contentType: 'kubevirt',
        source: {
          http: { url: `https://factory.talos.dev/image/${schematicID}/${version}/openstack-amd64.raw.xz` },
        },
        storage: { storageClassName: 'replicated', resources: { requests: { storage: '6Gi' } } },
      },
    });
  }

  async imageIsReady(image: Image): Promise<void> {
    await this.kubectl(['wait', '--for=condition=Ready', '--timeout=100s', `workerimage/${nameOf(image)}`]);
  }

  async retireImage(image: Image): Promise<void> {
    await this.kubectl(['delete', 'workerimage', nameOf(image)]);
  }

  /** Lets the imports that are stuck come to their end. */
  async releaseImports(): Promise<void> {
    const rules = await readFile(this.platform.simRules, 'utf8');
    const scratch = `${this.platform.simRules}.new`;
    await writeFile(scratch, rules.replaceAll('outcome: Hold', 'outcome: Succeed'));
    await rename(scratch, this.platform.simRules);
  }

  /** Ends the server of the images and runs it again. */
  async restartServer(): Promise<void> {
    const serverOf = ({ processes }: StackState) => processes['workerimage-apiserver']!.pid;
    const before = await this.stackState();
    process.kill(before.pid, 'SIGUSR1');
    while (serverOf(await this.stackState()) === serverOf(before)) {
      await sleep(100);
    }
  }

  private async stackState(): Promise<StackState> {
    return JSON.parse(await readFile(resolve(this.platform.stackDir, 'state.json'), 'utf8')) as StackState;
  }

  async createPool(name: string, spec: PoolSpec): Promise<void> {
    await this.apply({
      apiVersion: 'apps.cozystack.io/v1alpha1',
      kind: 'KubernetesNodes',
      metadata: { name, namespace: 'tenant-a' },
      spec,
    });
  }

  async pool(name: string): Promise<Pool> {
    return JSON.parse(await this.kubectl(['get', 'kubernetesnodes', '-n', 'tenant-a', name, '-o', 'json'])) as Pool;
  }

  private async apply(object: object): Promise<void> {
    await this.kubectl(['apply', '-f', '-'], JSON.stringify(object));
  }

  private async kubectl(args: string[], input = ''): Promise<string> {
    const child = spawn(this.platform.kubectl, ['--kubeconfig', this.platform.kubeconfig, ...args]);
    child.stdin.end(input);
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    if (child.exitCode !== 0) {
      throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    }
    return stdout;
  }
}

function nameOf({ schematicID, version }: Image): string {
  return `talos-worker-${schematicID}-${version}`;
}
