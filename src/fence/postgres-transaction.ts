/**
 * One transaction on a pooled connection.
 *
 *   connect -> begin, opening -> body -> commit -> done
 *                 \-> rollback -> again (lost against another transaction), or throw
 *
 * The opening, such as the fence's check, travels with BEGIN: a fenced transaction makes no more round
 * trips than one without.
 *
 * The server ends a transaction whose client is silent for `idleTimeoutMs`: a paused process would
 * otherwise hold its locks, and keep a new owner's seal waiting, until it comes back. When the connection
 * breaks during COMMIT, the outcome is unknown and the error says so; nothing is repeated then.
 */
import type { Pool, PoolClient } from 'pg'
import { createTenureError } from '../core/tenure-error.ts'
import {
  beginError,
  isSerializationFailure,
  isUnreachable,
  outcomeUnknown,
  unreachable,
  wasNeverSent,
} from './postgres-errors.ts'

/** What of a pool is used; `new Pool(…)` of `pg` is one. */
export type PostgresPool = Pick<Pool, 'connect' | 'query'>

type Connecting = Pick<Pool, 'connect'>

export type PostgresIsolation = 'read committed' | 'repeatable read' | 'serializable'

export type TransactionSettings = {
  readonly isolation: PostgresIsolation
  /** 0: none. */
  readonly idleTimeoutMs: number
}

/** A statement that goes with BEGIN in one message, and its errors in the caller's words. */
export type Opening = {
  /** SQL without parameters: a message of several statements takes none. */
  readonly statement: string
  failed(error: unknown): unknown
}

/** How long a guarded transaction may be silent unless its caller says otherwise. */
export const IDLE_TIMEOUT_MS = 10_000
/** A transaction that lost so often meets more contention than repeating can solve. */
const TRIES_MAX = 20

/**
 * Runs the body in a transaction; again, from the start, when it lost against another one.
 *
 * @throws TenureError `store-unreachable`; `conflict` when it lost every time; what the body throws
 */
export async function inTransaction<T>(
  pool: Connecting,
  settings: TransactionSettings,
  body: (client: PoolClient) => Promise<T>,
  opening: Opening | null = null,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await runOnce(pool, settings, body, opening)
    } catch (error) {
      if (!isSerializationFailure(error)) throw error
      if (tries === TRIES_MAX) {
        throw createTenureError(
          'conflict',
          `the transaction lost ${TRIES_MAX} times against others: nothing was written`,
          { cause: error },
        )
      }
    }
  }
}

async function runOnce<T>(
  pool: Connecting,
  settings: TransactionSettings,
  body: (client: PoolClient) => Promise<T>,
  opening: Opening | null,
): Promise<T> {
  const client = await connect(pool)
  // A connection that the server ends while nobody asks it anything says so by this event alone; the
  // next statement reports it.
  const ignore = () => {}
  client.on('error', ignore)
  let broken = true
  try {
    await begin(client, settings, opening)
    const value = await body(client)
    await commit(client)
    broken = false
    return value
  } catch (error) {
    broken = !(await rollback(client))
    throw error
  } finally {
    client.removeListener('error', ignore)
    // A connection in an unknown state is not handed to the next.
    client.release(broken)
  }
}

async function connect(pool: Connecting): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw isUnreachable(error) ? unreachable(error) : error
  }
}

/** All in one message. */
async function begin(
  client: PoolClient,
  { isolation, idleTimeoutMs }: TransactionSettings,
  opening: Opening | null,
): Promise<void> {
  const statements = [
    `begin isolation level ${isolation}`,
    `set local idle_in_transaction_session_timeout = ${Math.ceil(idleTimeoutMs)}`,
  ]
  if (opening !== null) statements.push(opening.statement)
  try {
    await client.query(statements.join('; '))
  } catch (error) {
    const known = beginError(error)
    throw known === error && opening !== null ? opening.failed(error) : known
  }
}

async function commit(client: PoolClient): Promise<void> {
  let command: string
  try {
    command = (await client.query('commit')).command
  } catch (error) {
    if (wasNeverSent(error)) throw unreachable(error)
    throw isUnreachable(error) ? outcomeUnknown(error) : error
  }
  // PostgreSQL answers so, without an error, when a statement had failed and the body went on.
  if (command === 'COMMIT') return
  throw createTenureError(
    'conflict',
    'a statement of the transaction failed and its error was caught, so nothing was written: let it through, or use a savepoint',
  )
}

/** False when the connection is of no more use. */
async function rollback(client: PoolClient): Promise<boolean> {
  try {
    await client.query('rollback')
    return true
  } catch {
    return false
  }
}
