// The scheduled settlement of many tenants, for `tenure worker ./scheduled-settlement.js`: each tenant is
// settled at its due times, once, by the worker that owns the tenant's partition.
//
// SETTLEMENT_URL is the service that keeps the books, behind a fence: it remembers per partition the
// highest token that was sealed and refuses every other (409), and it commits a settlement, its
// idempotency key and the tenant's `lastDueMs` in one step. With PostgreSQL in its place, `seal`, `load`
// and `run` are three transactions (`tenure/fence/postgres`).
import { TenureError } from 'tenure'
import { everyInterval, scheduledJobs } from 'tenure/work'

const url = process.env.SETTLEMENT_URL ?? 'http://127.0.0.1:8080'
const everyMs = Number(process.env.SETTLEMENT_EVERY_MS ?? 3_600_000)
const partitions = Number(process.env.TENURE_PARTITIONS ?? 64)
const RETRY_MS = 100

export const worker = {
  settings: { partitions },

  ...scheduledJobs({
    partitions,
    // Before anything is read: a late write of the owner before this one cannot land after it.
    seal: (token) => ask('/seal', { token }),
    // [{ key: 'tenant-17', lastDueMs: 1764450000000 | null, sinceMs }]
    load: async (token) => (await ask('/tenants', { token })).tenants,
    // Every owner computes the same due times, whatever happened before it came.
    nextDueMs: (tenant, afterMs) => everyInterval({ everyMs, fromMs: tenant.sinceMs })(afterMs),
    // The idempotency key, `<tenant>:<due time>`, makes a second run of the same due time harmless.
    run: ({ job, dueMs, idempotencyKey, token }) =>
      ask('/settle', { tenant: job.key, dueMs, idempotencyKey, token }),
    reloadMs: 5000,
    onFailure: ({ due, error }) => console.error(`${due.idempotencyKey}: ${error.message}`),
  }),
}

/** Asks until the service answers. */
async function ask(path, body) {
  for (;;) {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).catch(() => null)
    if (reply?.ok) return reply.json()
    if (reply?.status === 409) {
      // Ends this grant's runs: a newer owner has taken over.
      const { highest } = await reply.json()
      throw new TenureError('fence-refused', 'the settlement service refused the token', {
        details: { highest },
      })
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}
