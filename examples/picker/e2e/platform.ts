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

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { access, constants, mkdir, readFile, rm } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

/** Where the tests find the page, the cluster and the browser. */
export interface Platform {
  url: string;
  chromium: string;
  kubectl: string;
  kubeconfig: string;
  /** The file that orders what becomes of imports. */
  simRules: string;
  /** The directory of the stack. */
  stackDir: string;
  /** Where screenshots are kept. */
  artifacts: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    platform: Platform;
  }
}

const root = resolve(import.meta.dirname, '../../..');
const bin = (name: string) => resolve(root, '_output/bin', name);
const artifacts = resolve(root, '_output/picker');
const stackDir = resolve(artifacts, 'stack');

/** Starts a development stack of its own, with the samples, and serves the built page against it as tenant-a. */
export default async function setup(project: TestProject) {
  const chromium = await findChromium();
  // A run that was killed may have left its stack behind.
  await promisify(execFile)(bin('stack'), ['down', '--dir', stackDir]);
  await rm(artifacts, { recursive: true, force: true });
  await mkdir(artifacts, { recursive: true });

  const children: ChildProcess[] = [];
  const tearDown = async () => {
    await Promise.all(children.map(end));
  };
  try {
    const stack = startStack();
    children.push(stack);
    const state = await stackIsReady(stack);
    const picker = spawn(bin('picker'), ['--kubeconfig', state.kubeconfigs['tenant-a']!], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(picker);
    project.provide('platform', {
      url: await urlOf(picker),
      chromium,
      kubectl: state.kubectl,
      kubeconfig: state.kubeconfig,
      simRules: state.simRules,
      stackDir,
      artifacts,
    });
  } catch (error) {
    await tearDown();
    throw error;
  }
  return tearDown;
}

/** Returns the browser that $CHROMIUM names, or else the first on the PATH. */
async function findChromium(): Promise<string> {
  const directories = (process.env.PATH ?? '').split(delimiter);
  const onPath = ['chromium', 'google-chrome'].flatMap((name) => directories.map((directory) => join(directory, name)));
  for (const path of process.env.CHROMIUM ? [process.env.CHROMIUM] : onPath) {
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // The next one may be there.
    }
  }
  throw new Error(
    process.env.CHROMIUM
      ? `there is no browser at ${process.env.CHROMIUM}, which CHROMIUM names`
      : "there is neither chromium nor google-chrome: install Debian's package chromium, or set CHROMIUM to a browser",
  );
}

function startStack(): ChildProcess {
  const log = openSync(resolve(artifacts, 'stack.log'), 'w');
  const args = ['up', '--dir', stackDir, '--server', bin('workerimage-apiserver')];
  args.push('--manifests', 'artifacts/deploy', '--load', 'artifacts/samples/stack');
  return spawn(bin('stack'), args, { cwd: root, stdio: ['ignore', log, log] });
}

/** What a stack says of itself. */
export interface StackState {
  pid: number;
  ready: boolean;
  kubectl: string;
  kubeconfig: string;
  kubeconfigs: Record<string, string>;
  simRules: string;
  processes: Record<string, { pid: number }>;
}

/** Waits until the stack is ready. One that is built for the first time takes minutes. */
async function stackIsReady(stack: ChildProcess): Promise<StackState> {
  while (stack.exitCode === null) {
    const state = await readState();
    if (state?.ready && state.pid === stack.pid) {
      return state;
    }
    await sleep(200);
  }
  throw new Error(`the stack ended: see ${resolve(artifacts, 'stack.log')}`);
}

async function readState(): Promise<StackState | undefined> {
  try {
    return JSON.parse(await readFile(resolve(stackDir, 'state.json'), 'utf8')) as StackState;
  } catch {
    return undefined; // not written yet
  }
}

/** The address that the picker's server prints. */
async function urlOf(picker: ChildProcess): Promise<string> {
  for await (const line of createInterface(picker.stdout!)) {
    const url = /http:\S+/.exec(line)?.[0];
    if (url) {
      return url;
    }
  }
  throw new Error('the server of the page ended');
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}
