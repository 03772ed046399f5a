/**
 * The fence of data in PostgreSQL: `tenure/fence/postgres`. One row per partition holds the highest token.
 * A guarded effect shares a lock on it inside its own transaction and a seal takes it alone, so work within
 * a partition runs in parallel, and a seal waits for the transactions that were admitted before it and for
 * no later one. The effect commits under the token that it was checked with, or not at all. The check
 * travels with BEGIN, so it costs no round trip.
 *
 * Right under every isolation level: under `repeatable read` and `serializable` a snapshot older than a
 * seal makes PostgreSQL refuse the row, and the transaction runs again on a new snapshot.
 *
 * Works behind poolers that keep a connection for a transaction (PgBouncer's `transaction` mode).
 *
 * Not promised: anything when the fence's row is lost with a primary whose standby is asynchronous, or when
 * an effect itself commits or rolls back. `synchronous_commit = off` loses fence and effects alike.
 */
import type { ClientBase, PoolClient } from 'pg'
import { groupName } from '../core/ids.ts'
import type { Token } from '../core/token.ts'
import { checkToken, checkTokenOf } from '../core/token-text.ts'
import {
  badEffect,
  type EffectOutcome,
  type Fence,
  fenceRefused,
  type SealOutcome,
} from './fence.ts'
import { schemaNameOf } from './postgres-names.ts'
import { openFence, refusalOf, staleOf } from './postgres-refusal.ts'
import { askFence, checkReady } from './postgres-statements.ts'
import {
  IDLE_TIMEOUT_MS,
  inTransaction,
  type PostgresIsolation,
  type PostgresPool,
} from './postgres-transaction.ts'

export {
  type FencedOptions,
  type FencedOutcome,
  type FencedWork,
  fencedTransaction,
  type LaggingCheckpoint,
  type OutboxMessage,
  readCheckpoint,
} from './postgres-fenced-transaction.ts'
export { migrate, migrationSql } from './postgres-migration.ts'
export {
  type OutboxOptions,
  type PruneOptions,
  pruneSent,
  type StoredMessage,
  takeOutbox,
} from './postgres-outbox.ts'
export { readRefusals } from './postgres-statements.ts'
export type { PostgresIsolation, PostgresPool } from './postgres-transaction.ts'

/** Runs inside the guarded transaction, once or more often; its result counts when it commits. */
export type PostgresEffect<T> = (client: PoolClient) => Promise<T>

export type PostgresFenceOptions = {
  /** Where `migrate` put the tables [`public`]. */
  readonly schema?: string
  /** Tokens of another group are refused [every group's are taken]. */
  readonly group?: string
  /** Of guarded effects [`read committed`]. */
  readonly isolation?: PostgresIsolation
  /** After so long without a statement the server ends a guarded transaction [10000]. 0: never. */
  readonly idleTimeoutMs?: number
}

export interface PostgresFence extends Fence<PostgresEffect<unknown>, unknown> {
  /** As `Fence.seal`. Waits for the guarded transactions that run. */
  seal(token: Token): Promise<SealOutcome>
  /** As `Fence.guard`: the effect's statements and the check are one transaction. */
  guard<T>(token: Token, effect: PostgresEffect<T>): Promise<EffectOutcome<T>>
  /**
   * The check for a transaction of your own: keeps the fence where it is until that ends. Make it before
   * any savepoint: rolling back to one that stands before the check takes its lock away with it.
   * @throws TenureError `fence-refused`; the transaction is aborted then
   */
  check(client: ClientBase, token: Token): Promise<void>
}

/**
 * @throws TenureError `invalid-argument` or `invalid-name` for a bad option; its functions throw
 *   `invalid-argument` for a bad token, `fence-not-ready` for a server that is too old or not migrated,
 *   `store-unreachable` (with `details.outcome` `unknown` when COMMIT got no answer) and `conflict`.
 * @example
 * const fence = createPostgresFence(pool, { group: 'orders' })
 * await fence.seal(p.token)
 * await fence.guard(p.token, (client) => client.query('update stock set left = left - 1'))
 */
export function createPostgresFence(
  pool: PostgresPool,
  options: PostgresFenceOptions = {},
): PostgresFence {
  const schema = schemaNameOf(options.schema)
  const group = options.group === undefined ? null : groupName(options.group)
  const checked = (value: Token) =>
    group === null ? checkToken(value) : checkTokenOf(group, value)
  const isolation = options.isolation ?? 'read committed'
  const settings = { isolation, idleTimeoutMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS }
  return {
    async seal(value) {
      const token = checked(value)
      await checkReady(pool, schema)
      // Whatever the pool's default: a seal that waited must see what it waited for.
      const sealing = { ...settings, isolation: 'read committed' as const }
      const refusal = await refusalOf(() =>
        inTransaction(pool, sealing, async () => {}, openFence(schema, 'tenure_seal', token)),
      )
      return refusal.ok ? { ok: true } : staleOf(refusal)
    },
    async guard(value, effect) {
      const token = checked(value)
      if (typeof effect !== 'function') throw badEffect('give a function of a client')
      await checkReady(pool, schema)
      return refusalOf(() =>
        inTransaction(pool, settings, effect, openFence(schema, 'tenure_hold', token)),
      )
    },
    async check(client, value) {
      const token = checked(value)
      const refusal = await askFence(client, schema, 'tenure_hold', token)
      if (refusal !== null) throw fenceRefused(token, refusal)
    },
  }
}
