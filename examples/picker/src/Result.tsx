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
