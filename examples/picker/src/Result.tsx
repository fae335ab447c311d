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

import type { Pool } from './api/pools';

/** How an attempt to save a pool ended. */
export type Outcome = { saved: Pool; created: boolean } | { refusal: string };

export function Result({ outcome }: { outcome: Outcome }) {
  if ('refusal' in outcome) {
    return (
      <section className="result refused" role="alert">
        <h2>Refused</h2>
        <p>{outcome.refusal}</p>
      </section>
    );
  }
  const { saved, created } = outcome;
  return (
    <section className="result saved" role="status">
      <h2>
        {created ? 'Created' : 'Saved'} {saved.metadata.name}
      </h2>
      <pre>{JSON.stringify(saved.spec, null, 2)}</pre>
    </section>
  );
}
