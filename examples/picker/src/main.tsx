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
