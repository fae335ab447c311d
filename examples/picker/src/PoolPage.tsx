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

import { useMemo, useState } from 'react';

import type { Pool, Pools, PoolSpec } from './api/pools';
import { OptionsProvider } from './options/OptionsProvider';
import { NameField } from './NameField';
import { hasFactory, imageConflict, withOneOrigin } from './osImage';
import { PoolForm } from './PoolForm';
import { type Outcome, Result } from './Result';

const formID = 'pool';

interface Props {
  namespace: string;
  pools: Pools;
  /** The pool to change, or undefined to make one. */
  existing: Pool | undefined;
}

/** Makes a pool, or changes one. A pool that was made can be changed at once. */
export function PoolPage({ namespace, pools, existing }: Props) {
  const [pool, setPool] = useState(existing);
  const [name, setName] = useState('');
  const [spec, setSpec] = useState(existing?.spec ?? undefined);
  const [outcome, setOutcome] = useState<Outcome>();
  const [saving, setSaving] = useState(false);

  const conflict = useMemo(() => imageConflict(spec), [spec]);
  const change = (changed: PoolSpec) => setSpec(withOneOrigin(changed, pool?.spec));

  const save = async (form: PoolSpec) => {
    const submitted = withOneOrigin(form, pool?.spec);
    setSaving(true);
    setOutcome(undefined);
    try {
      const saved = pool
        ? await pools.update(pool, submitted)
        : await pools.create(`${submitted.cluster}-${name}`, submitted);
      setPool(saved);
      setSpec(saved.spec ?? undefined);
      setOutcome({ saved, created: !pool });
      history.replaceState(null, '', `?name=${encodeURIComponent(saved.metadata.name)}`);
    } catch (error) {
      setOutcome({ refusal: error instanceof Error ? error.message : String(error) });
    } finally {
      setSaving(false);
    }
  };

  return (
    <OptionsProvider namespace={namespace} isNew={!pool} conflict={conflict}>
      <header>
        <h1>{pool ? pool.metadata.name : 'New node pool'}</h1>
        <p>
          in <code>{namespace}</code>
        </p>
      </header>
      {!pool && <NameField form={formID} cluster={spec?.cluster} pool={name} onChange={setName} />}
      <PoolForm
        id={formID}
        spec={spec}
        isNew={!pool}
        hasFactory={hasFactory(pool?.spec)}
        disabled={saving}
        onChange={change}
        onSubmit={save}
      />
      <footer>
        <button type="submit" form={formID} disabled={saving}>
          {pool ? 'Save' : 'Create'}
        </button>
        {pool && <a href="?">New pool</a>}
      </footer>
      {outcome && <Result outcome={outcome} />}
    </OptionsProvider>
  );
}
