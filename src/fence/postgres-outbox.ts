/**
 * Sends what effects have put into the outbox. Messages are taken under a row lock, handed to `send`, and
 * marked as sent when it returns: each is sent at least once, and never lost. A sender that dies between
 * sending and marking leaves them to the next, so the receiver must know a message again by its `id`.
 *
 * Any process may send, owner or not, and several at once, each its own messages. Order: by id within one
 * call. Not promised: order across senders, nor that ids are given in the order of commits.
 */
import { createTenureError } from '../core/tenure-error.ts'
import { schemaNameOf } from './postgres-names.ts'
import { askTables, checkReady } from './postgres-statements.ts'
import { inTransaction, type PostgresPool } from './postgres-transaction.ts'

export type StoredMessage = {
  /** Unique in the table, decimal. */
  readonly id: string
  readonly group: string
  readonly partition: number
  readonly topic: string
  readonly payload: unknown
  readonly createdAt: Date
}

export type OutboxOptions = {
  readonly group: string
  /** [every partition's] */
  readonly partition?: number
  /** Messages at once [100]. */
  readonly limit?: number
  /** `send` must take no longer, or its messages are free for another sender [60000]. */
  readonly sendTimeoutMs?: number
  /** [`public`] */
  readonly schema?: string
}

const LIMIT = 100
const LIMIT_MAX = 10_000
const SEND_TIMEOUT_MS = 60_000

/**
 * Hands waiting messages to `send` and marks them. Returns how many; 0: nothing waits.
 *
 * @throws what `send` throws; the messages wait on then. TenureError as `fencedTransaction`.
 * @example while ((await takeOutbox(pool, { group: 'orders' }, publishAll)) > 0);
 */
export async function takeOutbox(
  pool: PostgresPool,
  options: OutboxOptions,
  send: (messages: readonly StoredMessage[]) => Promise<void>,
): Promise<number> {
  const schema = schemaNameOf(options.schema)
  const limit = options.limit ?? LIMIT
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) {
    throw createTenureError('invalid-argument', `limit must be a whole number, 1 to ${LIMIT_MAX}`)
  }
  await checkReady(pool, schema)
  const idleTimeoutMs = options.sendTimeoutMs ?? SEND_TIMEOUT_MS
  let sent: readonly StoredMessage[] | null = null
  return inTransaction(pool, { isolation: 'read committed', idleTimeoutMs }, async (client) => {
    // A transaction that has sent and then lost is not repeated: that would send again at once.
    if (sent !== null) throw createTenureError('conflict', 'messages were sent and not marked')
    const { rows } = await askTables<StoredMessage>(
      client,
      `select id, group_name as "group", partition, topic, payload, created_at as "createdAt"
        from ${schema}.tenure_outbox
        where group_name = $1 and ($2::int is null or partition = $2) and sent_at is null
        order by id limit $3 for update skip locked`,
      [options.group, options.partition ?? null, limit],
    )
    if (rows.length === 0) return 0
    await send(rows)
    sent = rows
    await askTables(
      client,
      `update ${schema}.tenure_outbox set sent_at = clock_timestamp() where id = any($1::bigint[])`,
      [rows.map(({ id }) => id)],
    )
    return rows.length
  })
}

export type PruneOptions = {
  readonly group: string
  /**
   * Sent messages and idempotency keys that are older go. A key that is gone no longer keeps its effect
   * from running again, so keep them for longer than anything is delivered again.
   */
  readonly olderThanMs: number
  /** [`public`] */
  readonly schema?: string
}

/** Deletes what is no longer needed; returns how many rows of each. */
export async function pruneSent(
  pool: PostgresPool,
  options: PruneOptions,
): Promise<{ readonly messages: number; readonly idempotencyKeys: number }> {
  const schema = schemaNameOf(options.schema)
  if (!(options.olderThanMs >= 0)) {
    throw createTenureError('invalid-argument', 'olderThanMs must be 0 or more')
  }
  await checkReady(pool, schema)
  const remove = (table: string, column: string) =>
    askTables(
      pool,
      `delete from ${schema}.${table} where group_name = $1
        and ${column} < clock_timestamp() - $2 * interval '1 millisecond'`,
      [options.group, options.olderThanMs],
    )
  const messages = await remove('tenure_outbox', 'sent_at')
  const keys = await remove('tenure_idempotency', 'applied_at')
  return { messages: messages.count, idempotencyKeys: keys.count }
}
