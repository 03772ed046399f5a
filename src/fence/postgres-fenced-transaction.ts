/**
 * Effect, dedupe, progress and messages to send, in one transaction under the fence: all of them commit, or
 * none. What has been applied already is not applied again, whoever delivers it and however often:
 *
 *   idempotencyKey  an effect of this key was committed before, in this group: nothing runs
 *   checkpoint      the position stands at or below the stored one: nothing runs; else it becomes that
 *
 * A checkpoint says that all positions up to it are done. Given as a number, positions of a partition are
 * to be applied in their order, and its transactions run one after the other within the partition; those
 * without one run in parallel.
 *
 * Where several positions are worked on at once, the checkpoint lags behind them, and is given as
 * `{ position, sequence }`: `position` is what is applied, `sequence` what the checkpoint rises to. A
 * position above the stored checkpoint may then have been applied, which only its idempotency key tells,
 * so that is required wherever the two differ.
 */
import type { PoolClient } from 'pg'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import { checkToken } from '../core/token-text.ts'
import { schemaNameOf } from './postgres-names.ts'
import { openFence, refusalOf } from './postgres-refusal.ts'
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
  /**
   * Position of what is applied in the partition's input; whole, above 0, such as a stream's sequence. Or
   * that with a checkpoint that lags behind, such as a partitioned consumer gives its handler: pass that
   * as it is. A bare number is kept under the empty name, and a consumer that loads under another would
   * begin from the start.
   */
  readonly checkpoint?: number | LaggingCheckpoint
  /** [`read committed`] */
  readonly isolation?: PostgresIsolation
  /** After so long without a statement the server ends the transaction [10000]. 0: never. */
  readonly idleTimeoutMs?: number
  /** [`public`] */
  readonly schema?: string
}

export type LaggingCheckpoint = {
  /** Of the input: several inputs of one group have a checkpoint each. 200 characters at most [empty]. */
  readonly name?: string
  /** Of what is applied. */
  readonly position: number
  /** Up to here all is done once this commits; 0 or more. Read as the last before COMMIT. */
  readonly sequence: number
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
  const { idempotencyKey } = options
  const checkpoint = checkOptions(options)
  await checkReady(pool, schema)
  const settings = {
    isolation: options.isolation ?? 'read committed',
    idleTimeoutMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
  }
  const outcome = await refusalOf(() =>
    inTransaction(
      pool,
      settings,
      async (client): Promise<FencedOutcome<T>> => {
        const by = await appliedBefore(client, place, idempotencyKey, checkpoint)
        if (by !== null) return { ok: true, applied: false, by }
        const outbox = { add: (message: OutboxMessage) => addMessage(client, place, message) }
        const value = await work(client, outbox)
        if (checkpoint?.lagging != null) await raise(client, place, checkpoint, checkpoint.lagging)
        return { ok: true, applied: true, value }
      },
      openFence(schema, 'tenure_hold', place.token),
    ),
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
  token: TokenPlace,
  options: {
    readonly schema?: string
    /** The one that the checkpoint was given in `fencedTransaction` [empty]. */
    readonly name?: string
  } = {},
): Promise<number> {
  const schema = schemaNameOf(options.schema)
  const name = checkName(options.name ?? '')
  await checkReady(pool, schema)
  return storedPosition(pool, { schema, token }, name)
}

async function storedPosition(
  client: Pick<PostgresPool, 'query'>,
  { schema, token }: { readonly schema: string; readonly token: TokenPlace },
  name: string,
): Promise<number> {
  const { rows } = await askTables<{ position: string }>(
    client,
    `select position from ${schema}.tenure_checkpoint
      where group_name = $1 and partition = $2 and name = $3`,
    [token.group, token.partition, name],
  )
  return Number(rows[0]?.position ?? 0)
}

type TokenPlace = Pick<Token, 'group' | 'partition'>

type Place = { readonly schema: string; readonly token: Token }

const TOKEN_COLUMNS = 'group_name, partition, incarnation, generation, session'

function tokenValues({ token }: Place): readonly unknown[] {
  return [token.group, token.partition, token.incarnation, token.generation, token.session]
}

/** Takes key and position for this transaction; what tells that they were taken before, or null. */
async function appliedBefore(
  client: PoolClient,
  place: Place,
  idempotencyKey: string | undefined,
  checkpoint: Checkpoint | null,
): Promise<'idempotency-key' | 'checkpoint' | null> {
  if (idempotencyKey !== undefined && !(await takeKey(client, place, idempotencyKey))) {
    return 'idempotency-key'
  }
  if (checkpoint === null) return null
  const { name, position, lagging } = checkpoint
  const isFree =
    lagging === null
      ? await advance(client, place, name, position)
      : (await storedPosition(client, place, name)) < position
  if (isFree) return null
  if (idempotencyKey !== undefined) await returnKey(client, place, idempotencyKey)
  return 'checkpoint'
}

/** As the last step, so that transactions of one partition wait for each other only here. */
async function raise(
  client: PoolClient,
  place: Place,
  { name }: Checkpoint,
  lagging: LaggingCheckpoint,
): Promise<void> {
  // Asked for here and not before: what else was done meanwhile counts.
  const { sequence } = lagging
  if (!Number.isSafeInteger(sequence) || sequence < 0) {
    throw badOption('checkpoint.sequence', 'must be a whole number, 0 or more')
  }
  if (sequence > 0) await advance(client, place, name, sequence)
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
async function advance(
  client: PoolClient,
  place: Place,
  name: string,
  position: number,
): Promise<boolean> {
  const { count } = await askTables(
    client,
    `insert into ${place.schema}.tenure_checkpoint as stored (${TOKEN_COLUMNS}, name, position)
      values ($1, $2, $3, $4, $5, $6, $7)
      on conflict (group_name, partition, name) do update
        set position = excluded.position, incarnation = excluded.incarnation,
            generation = excluded.generation, session = excluded.session,
            updated_at = clock_timestamp()
        where stored.position < excluded.position`,
    [...tokenValues(place), name, position],
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

type Checkpoint = {
  readonly name: string
  readonly position: number
  /** Null: it rises to `position` itself. */
  readonly lagging: LaggingCheckpoint | null
}

/** The checkpoint as it is to be applied, null without one. */
function checkOptions({ idempotencyKey, checkpoint }: FencedOptions): Checkpoint | null {
  const isKey = (key: string) => key.length > 0 && key.length <= KEY_LENGTH_MAX
  if (idempotencyKey !== undefined && !isKey(idempotencyKey)) {
    throw badOption('idempotencyKey', `must be 1-${KEY_LENGTH_MAX} characters`)
  }
  if (checkpoint === undefined) return null
  const lagging = typeof checkpoint === 'number' ? null : checkpoint
  const position = typeof checkpoint === 'number' ? checkpoint : checkpoint.position
  const name = checkName(lagging?.name ?? '')
  if (!Number.isSafeInteger(position) || position <= 0) {
    throw badOption('checkpoint', 'must be a whole number above 0')
  }
  if (lagging === null || idempotencyKey !== undefined) return { name, position, lagging }
  if (lagging.sequence === position) return { name, position, lagging: null }
  throw badOption(
    'idempotencyKey',
    'must be given where the checkpoint lags: what is done above that is known by it alone',
  )
}

function checkName(name: string): string {
  if (name.length <= KEY_LENGTH_MAX) return name
  throw badOption('checkpoint.name', `must be ${KEY_LENGTH_MAX} characters at most`)
}

function badOption(field: string, what: string) {
  return createTenureError('invalid-argument', `${field} ${what}`, { details: { field } })
}
