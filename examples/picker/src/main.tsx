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

import { createRoot } from 'react-dom/client';

import { sendJSON } from './api/client';
import { Pools } from './api/pools';
import { PoolPage } from './PoolPage';
import './style.css';

/** What the server of this page tells it. */
interface Config {
  namespace: string;
}

const root = createRoot(document.getElementById('app')!);
try {
  root.render(await open(new URL(location.href).searchParams.get('name')));
} catch (error) {
  root.render(<p role="alert">{error instanceof Error ? error.message : String(error)}</p>);
}

/** The page for the pool of that name, or for a new one. */
async function open(name: string | null) {
  const { namespace } = await sendJSON<Config>('/config.json');
  const pools = await Pools.discover(namespace);
  const existing = name ? await pools.get(name) : undefined;
  return <PoolPage namespace={namespace} pools={pools} existing={existing} />;
}
