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

import { resolve } from 'node:path';

import { type Browser, chromium, type Locator, type Page } from 'playwright-core';

import type { Platform } from './platform';

export function launch(platform: Platform): Promise<Browser> {
  return chromium.launch({
    executablePath: platform.chromium,
    // The browser is to ask nobody but the page's server.
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Closes all pages, and keeps a picture of each if a test failed. */
export async function closeAll(browser: Browser, platform: Platform, failed: boolean): Promise<void> {
  for (const page of browser.contexts().flatMap((context) => context.pages())) {
    if (failed) {
      await page.screenshot({ path: resolve(platform.artifacts, 'failed.png'), fullPage: true });
    }
    await page.close();
  }
}

/** The page, as somebody in front of it sees and uses it. */
export class PoolForm {
  readonly schematic: Locator;
  readonly version: Locator;

  constructor(
    readonly page: Page,
    private readonly platform: Platform,
  ) {
    this.schematic = page.getByLabel('Schematic');
    this.version = page.getByLabel('Talos version');
  }

  /** Opens the form of a pool, or of a new one, and waits until its dropdowns are filled. */
  static async open(browser: Browser, platform: Platform, pool = ''): Promise<PoolForm> {
    const page = await openPage(browser);
    await page.goto(pool ? `${platform.url}?name=${pool}` : platform.url);
    const form = new PoolForm(page, platform);
    await form.schematic.locator('option', { hasText: 'Not set' }).waitFor({ state: 'attached' });
    return form;
  }

  field(label: string): Locator {
    return this.page.getByLabel(label);
  }

  async submit(button: 'Create' | 'Save'): Promise<string> {
    await this.page.getByRole('button', { name: button }).click();
    return this.page.locator('.result').innerText();
  }

  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({ path: resolve(this.platform.artifacts, `${name}.png`), fullPage: true });
  }
}

/** Opens an empty page. What goes wrong in a page without being caught fails the test run. */
export async function openPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 900, height: 1000 } });
  page.setDefaultTimeout(20_000);
  page.on('pageerror', (error) => {
    throw error;
  });
  return page;
}

/** The labels of what a dropdown offers. */
export async function offered(dropdown: Locator): Promise<string[]> {
  return dropdown.locator('option[data-offered="true"]').allInnerTexts();
}

/** The labels of what a dropdown offers that goes together with the other fields. */
export async function fitting(dropdown: Locator): Promise<string[]> {
  return dropdown.locator('> option[data-offered="true"]').allInnerTexts();
}

/** The label that a dropdown shows. */
export async function shown(dropdown: Locator): Promise<string> {
  return dropdown.locator('option:checked').innerText();
}
