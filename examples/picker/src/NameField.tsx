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

import type { Json } from './api/mergePatch';

interface Props {
  form: string;
  cluster: Json | undefined;
  pool: string;
  onChange(pool: string): void;
}

/** Asks for the pool's own part of its object's name, which is CLUSTER-POOL. */
export function NameField({ form, cluster, pool, onChange }: Props) {
  return (
    <div className="form-group">
      <label htmlFor="pool-name">
        Pool<span className="required">*</span>
      </label>
      <input
        id="pool-name"
        className="form-control"
        form={form}
        required
        pattern="[a-z0-9]([\-a-z0-9]*[a-z0-9])?"
        title="Lower-case letters, digits and dashes"
        value={pool}
        onChange={(event) => onChange(event.target.value)}
        aria-describedby="pool-name-help"
      />
      <p id="pool-name-help" className="field-description">
        The object will be called{' '}
        <code>
          {typeof cluster === 'string' && cluster !== '' ? cluster : 'CLUSTER'}-{pool || 'POOL'}
        </code>
        .
      </p>
    </div>
  );
}
