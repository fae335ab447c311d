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

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';

import { Cluster, type Image, platformDefault } from './cluster';
import { closeAll, fitting, launch, offered, openPage, PoolForm, shown } from './form';

const platform = inject('platform');
const cluster = new Cluster(platform);

/** Is imported until the imports are released. */
const arriving: Image = { schematicID: 'stuck-drbd', version: 'v1.14.0' };
/** Is retired while a form has it chosen. */
const leaving: Image = { schematicID: 'leaving-zfs', version: 'v1.12.9' };

/** The only image of its schematic and of its version. */
const ahead: Image = { schematicID: 'ahead', version: 'v1.15.0' };

const soon = { timeout: 20_000 };
/** The page waits longer after each attempt that fails. */
const afterRestart = { timeout: 60_000 };

let browser: Browser;
beforeAll(async () => {
  browser = await launch(platform);
  await Promise.all([arriving, leaving, ahead].map((image) => cluster.importImage(image)));
  await Promise.all([platformDefault, leaving, ahead].map((image) => cluster.imageIsReady(image)));
});
afterEach(async ({ task }) => closeAll(browser, platform, task.result?.state === 'fail'));
afterAll(async () => browser?.close());

describe('the form of a new pool', () => {
  // Guards: preselection.
  it('has the default of the platform chosen', async () => {
    const form = await PoolForm.open(browser, platform);
    await expect.poll(() => form.schematic.inputValue(), soon).toBe(platformDefault.schematicID);
    await expect.poll(() => form.version.inputValue(), soon).toBe(platformDefault.version);
    await form.screenshot('new');
  });

  // Guards: that an image which is imported is offered, and what is sent on submit.
  it('makes a pool of an image that is still imported, and says that it is', async () => {
    const form = await PoolForm.open(browser, platform);
    await form.field('Pool').fill('drbd');
    await form.field('Cluster').fill('shop');
    await form.field('Maximum workers').fill('3');
    await form.schematic.click();
    await form.screenshot('importing');
    await form.page.keyboard.press('Escape');
    await form.schematic.selectOption(arriving.schematicID);
    await form.version.selectOption(arriving.version);
    expect(await shown(form.schematic)).toBe('stuck-drbd (importing)');
    expect(await form.schematic.getAttribute('title')).toContain('v1.14.0');

    expect(await form.submit('Create')).toContain('Created shop-drbd');
    await form.screenshot('created');
    expect((await cluster.pool('shop-drbd')).spec).toEqual({
      cluster: 'shop',
      version: 'v1.35',
      minReplicas: 0,
      maxReplicas: 3,
      diskSize: '20Gi',
      osImage: { builtin: arriving },
    });
  });

  // Guards: that changes of what is offered reach the dropdowns and leave the form's data alone.
  it('follows an image that becomes Ready, and keeps what was typed', async () => {
    const form = await PoolForm.open(browser, platform);
    await form.field('Cluster').fill('typed');
    await form.schematic.selectOption(arriving.schematicID);
    expect(await offered(form.schematic)).toContain('stuck-drbd (importing)');

    await cluster.releaseImports();
    await expect.poll(() => shown(form.schematic), soon).toBe('stuck-drbd');
    expect(await form.schematic.inputValue()).toBe(arriving.schematicID);
    expect(await form.field('Cluster').inputValue()).toBe('typed');
  });

  // Guards: choicesFor, which keeps what is chosen.
  it('follows an image that is retired, and keeps the choice that was made', async () => {
    const form = await PoolForm.open(browser, platform);
    await form.schematic.selectOption(leaving.schematicID);
    await form.version.selectOption(leaving.version);

    await cluster.retireImage(leaving);
    await expect.poll(() => shown(form.schematic), soon).toBe('leaving-zfs (not offered any more)');
    expect(await form.schematic.inputValue()).toBe(leaving.schematicID);
    await form.screenshot('retired');

    await form.schematic.selectOption(platformDefault.schematicID);
    expect(await form.schematic.locator('option').allInnerTexts()).not.toContain('leaving-zfs (not offered any more)');
  });

  // Guards: touched.
  it('stays empty where the default was taken out, whatever is offered later', async () => {
    const form = await PoolForm.open(browser, platform);
    await expect.poll(() => form.schematic.inputValue(), soon).toBe(platformDefault.schematicID);
    await form.schematic.selectOption('');
    const another = { schematicID: 'another', version: 'v1.13.6' };
    await cluster.importImage(another);
    await expect.poll(() => offered(form.schematic), soon).toContain('another (importing)');
    await cluster.imageIsReady(another);
    await expect.poll(() => offered(form.schematic), soon).toContain('another');
    expect(await form.schematic.inputValue()).toBe('');
  });

  // Guards: the text field in place of a dropdown.
  it('lets values be typed as long as the options cannot be read', async () => {
    const page = await openPage(browser);
    const options = /\/options/;
    await page.route(options, (route) =>
      route.fulfill({ status: 403, json: { kind: 'Status', message: 'not allowed' } }),
    );
    await page.goto(platform.url);
    const form = new PoolForm(page, platform);
    expect(await page.locator('.options-problem').first().innerText()).toContain('not allowed');
    await form.schematic.fill('mine');

    await page.unroute(options);
    await expect.poll(() => shown(form.schematic), soon).toBe('mine (not offered any more)');
  });

  // Guards: imageConflict, and the groups of the dropdown.
  it('sets apart what makes no image with the field that was chosen', async () => {
    const form = await PoolForm.open(browser, platform);
    await form.schematic.selectOption('gpu-nvidia');
    await form.version.selectOption('v1.13.6');
    await form.schematic.selectOption(ahead.schematicID);
    expect(await fitting(form.version)).toEqual([ahead.version]);
    expect(await offered(form.version)).toContain('v1.13.6');
    expect(await form.page.locator('.options-conflict').first().innerText()).toContain('v1.13.6');
    await form.screenshot('no-such-pair');

    await form.version.selectOption(ahead.version);
    await expect.poll(() => form.page.locator('.options-conflict').count(), soon).toBe(0);
    expect(await fitting(form.schematic)).toEqual([ahead.schematicID]);
  });

  // Guards: that follow begins again with a list, and that the problem is taken back.
  it('goes on by itself when the server of the images was restarted', async () => {
    const form = await PoolForm.open(browser, platform);
    await form.schematic.selectOption('gpu-nvidia');
    await cluster.restartServer();
    const later = { schematicID: 'later', version: 'v1.13.6' };
    await cluster.importImage(later);
    await expect.poll(() => offered(form.schematic), afterRestart).toContain('later');
    await expect.poll(() => form.page.locator('.options-problem').count(), soon).toBe(0);
    expect(await form.schematic.inputValue()).toBe('gpu-nvidia');
    await form.screenshot('restarted');
  });

  // Guards: that a Status is shown in its own words.
  it('shows why the API server refuses', async () => {
    const form = await PoolForm.open(browser, platform);
    await form.field('Pool').fill('md0');
    await form.field('Cluster').fill('prod');
    expect(await form.submit('Create')).toContain('"prod-md0" already exists');
  });
});

describe('the form of an existing pool', () => {
  // Guards: choicesFor for what is stored.
  it('keeps a stored image that is not offered any more', async () => {
    const builtin = { schematicID: 'forgotten', version: 'v1.11.1' };
    await cluster.createPool('shop-old', { cluster: 'shop', version: 'v1.35', osImage: { builtin } });
    const form = await PoolForm.open(browser, platform, 'shop-old');
    expect(await shown(form.schematic)).toBe('forgotten (not offered any more)');
    expect(await shown(form.version)).toBe('v1.11.1 (not offered any more)');
    await form.screenshot('kept');

    await form.field('Maximum workers').fill('5');
    expect(await form.submit('Save')).toContain('Saved shop-old');
    expect((await cluster.pool('shop-old')).spec).toMatchObject({ maxReplicas: 5, osImage: { builtin } });
  });

  // Guards: withOneOrigin on every change, and that the patch takes the factory out.
  it('replaces a factory by what is chosen, and never has both', async () => {
    const factory = { url: 'https://factory.talos.dev' };
    const spec = { cluster: 'shop', version: 'v1.35', maxReplicas: 10, osImage: { factory } };
    await cluster.createPool('shop-factory', spec);
    const form = await PoolForm.open(browser, platform, 'shop-factory');
    expect(await form.page.getByText('from a factory').count()).toBe(1);
    await form.schematic.selectOption('gpu-nvidia');
    await form.schematic.selectOption('');
    await form.field('Maximum workers').fill('7');
    expect(await form.submit('Save')).toContain('Saved shop-factory');
    expect((await cluster.pool('shop-factory')).spec).toEqual({ ...spec, maxReplicas: 7 });

    await form.schematic.selectOption('gpu-nvidia');
    await form.page.getByRole('button', { name: 'Save' }).click();
    await expect
      .poll(async () => (await cluster.pool('shop-factory')).spec?.osImage, soon)
      .toEqual({ builtin: { schematicID: 'gpu-nvidia' } });
  });

  // Guards: that nothing is preselected in what exists.
  it('chooses nothing by itself', async () => {
    const form = await PoolForm.open(browser, platform, 'prod-md0');
    expect(await form.schematic.inputValue()).toBe('');
  });

  // Guards: mergePatch, and that defaults are left out of what exists.
  it('changes nothing but what was changed in it', async () => {
    const spec = { cluster: 'shop', version: 'v1.35', maxReplicas: 10, instanceType: 'u1.large' };
    await cluster.createPool('shop-http', spec);
    const form = await PoolForm.open(browser, platform, 'shop-http');
    await form.field('Maximum workers').fill('7');
    expect(await form.submit('Save')).toContain('Saved shop-http');
    expect((await cluster.pool('shop-http')).spec).toEqual({ ...spec, maxReplicas: 7 });
  });
});
