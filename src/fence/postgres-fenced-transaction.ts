/**
 * Effect, dedupe, progress and messages to send, in one transaction under the fence: all of them commit, or
 * none. What has been applied already is not applied again, whoever delivers it and however often:
 *
 *   idempotencyKey  an effect of this key was committed before, in this group: nothing runs
 *   checkpoint      the position stands at or below the stored one: nothing runs; else it becomes that
 *
 * A checkpoint says that all positions up to it are done, so positions of a partition are to be applied in
 * their order. Its transactions run one after the other within the partition; those without one run in
 * parallel.
 */
import type { PoolClient } from 'pg'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import { checkToken } from '../core/token-text.ts'
import { schemaNameOf } from './postgres-names.ts'
import { refusalOf, requireFence } from './postgres-refusal.ts'
import { askTables, checkReady, type FenceRefusal } from './postgres-statements.ts'
import {
  IDLE_TIMEOUT_MS,
  inTransaction,
  type PostgresIsolation,
  type PostgresPool,
} from './postgres-transaction.ts'

export type FencedOptions = {
  /** 1-200 characters, unique in the group. */
  readonly idempotencyKey?: string
  /** Position of what is applied in the partition's input; whole, above 0, such as a stream's sequence. */
  readonly checkpoint?: number
  /** [`read committed`] */
  readonly isolation?: PostgresIsolation
  /** After so long without a statement the server ends the transaction [10000]. 0: never. */
  readonly idleTimeoutMs?: number
  /** [`public`] */
  readonly schema?: string
}

export type FencedOutcome<T> =
  | { readonly ok: true; readonly applied: true; readonly value: T }
  /** It was applied before; nothing ran now. */
  | { readonly ok: true; readonly applied: false; readonly by: 'idempotency-key' | 'checkpoint' }
  | FenceRefusal

export type OutboxMessage = {
  /** Whom or what it is for: a subject, a mail queue, a third party's name. */
  readonly topic: string
  /** Anything that JSON holds. */
  readonly payload: unknown
}

export type FencedWork<T> = (
  client: PoolClient,
  outbox: { add(message: OutboxMessage): Promise<void> },
) => Promise<T>

const KEY_LENGTH_MAX = 200

/**
 * @param work may run more than once; what counts is the run that commits
 * @throws TenureError as the functions of `createPostgresFence`; what `work` throws, after a rollback
 * @example
 * const outcome = await fencedTransaction(pool, p.token, { checkpoint: m.seq }, async (client, outbox) => {
 *   await client.query('update accounts set balance = balance + $1 where id = $2', [m.amount, m.account])
 *   await outbox.add({ topic: 'mail', payload: { to: m.account } })
 * })
 */
export async function fencedTransaction<T>(
  pool: PostgresPool,
  token: Token,
  options: FencedOptions,
  work: FencedWork<T>,
): Promise<FencedOutcome<T>> {
  const schema = schemaNameOf(options.schema)
  const place = { schema, token: checkToken(token) }
  checkOptions(options)
  await checkReady(pool, schema)
  const settings = {
    isolation: options.isolation ?? 'read committed',
    idleTimeoutMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
  }
  const outcome = await refusalOf(() =>
    inTransaction(pool, settings, async (client): Promise<FencedOutcome<T>> => {
      await requireFence(client, schema, 'tenure_guard', place.token)
      const { idempotencyKey, checkpoint } = options
      if (idempotencyKey !== undefined && !(await takeKey(client, place, idempotencyKey))) {
        return { ok: true, applied: false, by: 'idempotency-key' }
      }
      if (checkpoint !== undefined && !(await advance(client, place, checkpoint))) {
        if (idempotencyKey !== undefined) await returnKey(client, place, idempotencyKey)
        return { ok: true, applied: false, by: 'checkpoint' }
      }
      const outbox = { add: (message: OutboxMessage) => addMessage(client, place, message) }
      return { ok: true, applied: true, value: await work(client, outbox) }
    }),
  )
  return outcome.ok ? outcome.value : outcome
}

/**
 * The checkpoint that the partition's work has reached, 0 before the first: where a new owner, having
 * sealed, goes on.
 *
 * @throws TenureError `fence-refused` never: reading needs no token but its group and partition
 */
export async function readCheckpoint(
  pool: PostgresPool,
  token: Pick<Token, 'group' | 'partition'>,
  options: { readonly schema?: string } = {},
): Promise<number> {
  const schema = schemaNameOf(options.schema)
  await checkReady(pool, schema)
  const { rows } = await askTables<{ position: string }>(
    pool,
    `select position from ${schema}.tenure_checkpoint where group_name = $1 and partition = $2`,
    [token.group, token.partition],
  )
  return Number(rows[0]?.position ?? 0)
}

type Place = { readonly schema: string; readonly token: Token }

const TOKEN_COLUMNS = 'group_name, partition, incarnation, generation, session'

function tokenValues({ token }: Place): readonly unknown[] {
  return [token.group, token.partition, token.incarnation, token.generation, token.session]
}

/** False when the key is there already. Waits for a transaction that is about to take it. */
async function takeKey(client: PoolClient, place: Place, key: string): Promise<boolean> {
  const { count } = await askTables(
    client,
    `insert into ${place.schema}.tenure_idempotency (${TOKEN_COLUMNS}, idempotency_key)
      values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    [...tokenValues(place), key],
  )
  return count === 1
}

/** The effect of the key did not run, so the key is not used up. */
async function returnKey(client: PoolClient, { schema, token }: Place, key: string): Promise<void> {
  await askTables(
    client,
    `delete from ${schema}.tenure_idempotency where group_name = $1 and idempotency_key = $2`,
    [token.group, key],
  )
}

/** False when the stored checkpoint is not below the position. */
async function advance(client: PoolClient, place: Place, position: number): Promise<boolean> {
  const { count } = await askTables(
    client,
    `insert into ${place.schema}.tenure_checkpoint as stored (${TOKEN_COLUMNS}, position)
      values ($1, $2, $3, $4, $5, $6)
      on conflict (group_name, partition) do update
        set position = excluded.position, incarnation = excluded.incarnation,
            generation = excluded.generation, session = excluded.session,
            updated_at = clock_timestamp()
        where stored.position < excluded.position`,
    [...tokenValues(place), position],
  )
  return count === 1
}

async function addMessage(client: PoolClient, place: Place, message: OutboxMessage): Promise<void> {
  const payload = JSON.stringify(message.payload)
  if (payload === undefined) {
    throw createTenureError(
      'invalid-argument',
      'the payload of a message is nothing that JSON holds',
    )
  }
  await askTables(
    client,
    `insert into ${place.schema}.tenure_outbox (${TOKEN_COLUMNS}, topic, payload)
      values ($1, $2, $3, $4, $5, $6, $7)`,
    [...tokenValues(place), message.topic, payload],
  )
}

function checkOptions({ idempotencyKey, checkpoint }: FencedOptions): void {
  const isKey = (key: string) => key.length > 0 && key.length <= KEY_LENGTH_MAX
  if (idempotencyKey !== undefined && !isKey(idempotencyKey)) {
    throw badOption('idempotencyKey', `must be 1-${KEY_LENGTH_MAX} characters`)
  }
  if (checkpoint !== undefined && !(Number.isSafeInteger(checkpoint) && checkpoint > 0)) {
    throw badOption('checkpoint', 'must be a whole number above 0')
  }
}

function badOption(field: string, what: string) {
  return createTenureError('invalid-argument', `${field} ${what}`, { details: { field } })
}
