/** What PostgreSQL and its client say, as errors of Tenure that name the remedy. */
import { createTenureError, isTenureError, type TenureError } from '../core/tenure-error.ts'

/** PostgreSQL's SQLSTATE, or Node's code of a failed connection. */
export function errorCode(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/** The transaction lost against another one and left nothing behind: it may simply be run again. */
export function isSerializationFailure(error: unknown): boolean {
  const code = errorCode(error)
  return code === '40001' || code === '40P01'
}

/** No schema, table, column or function of that name. */
const MISSING = new Set(['3F000', '42P01', '42703', '42883'])
const UNPRIVILEGED = '42501'
const READ_ONLY = '25006'
const IDLE_TOO_LONG = '25P03'
/** SQLSTATE classes: connection, shut down by an operator, idle for too long; the rest are Node's. */
const UNREACHABLE =
  /^(08...|57P0[1-5]|25P03|53300|E(CONN|PIPE|HOST|NET|TIMEDOUT|AI_AGAIN|NOTFOUND).*)$/
/** What pg throws without a code. */
const UNREACHABLE_TEXT =
  /connection terminated|timeout exceeded when trying to connect|not queryable/i

/** For statements of the fence itself; an effect's own errors are the caller's and pass as they are. */
export function fenceStatementError(error: unknown): unknown {
  if (isTenureError(error) || isSerializationFailure(error)) return error
  const code = errorCode(error)
  if (code !== null && MISSING.has(code)) {
    return notReady(
      'the tables of the fence are missing: run migrate(pool) with the same schema',
      error,
    )
  }
  if (code === UNPRIVILEGED) {
    return notReady(
      'this user may not use the fence: grant it the tenure_ tables and sequences',
      error,
    )
  }
  if (code === READ_ONLY) return notReady('the server is read-only: connect to the primary', error)
  return isUnreachable(error) ? unreachable(error) : error
}

/** The connection was gone, or the server had ended the silent transaction, before the statement. */
export function wasNeverSent(error: unknown): boolean {
  if (errorCode(error) !== null) return errorCode(error) === IDLE_TOO_LONG
  return error instanceof Error && error.message.includes('not queryable')
}

/** PgBouncer in `statement` mode; it uses the code of a broken connection for it. */
const STATEMENT_POOLING = /statement pooling mode/i

/** For the statement that begins a transaction. */
export function beginError(error: unknown): unknown {
  if (error instanceof Error && STATEMENT_POOLING.test(error.message)) {
    return notReady(
      'the pooler lends a connection for one statement only: set pool_mode = transaction, or session',
      error,
    )
  }
  return isUnreachable(error) ? unreachable(error) : error
}

export function isUnreachable(error: unknown): boolean {
  const code = errorCode(error)
  if (code !== null) return UNREACHABLE.test(code)
  return error instanceof Error && UNREACHABLE_TEXT.test(error.message)
}

export function unreachable(error: unknown): TenureError {
  return createTenureError('store-unreachable', `PostgreSQL: ${messageOf(error)}`, { cause: error })
}

/** The connection broke while COMMIT was on its way. */
export function outcomeUnknown(error: unknown): TenureError {
  return createTenureError(
    'store-unreachable',
    'PostgreSQL: the connection broke during COMMIT, so the effect may have been applied or not: repeat it with the same idempotency key or checkpoint',
    { cause: error, details: { outcome: 'unknown' } },
  )
}

export function notReady(message: string, cause?: unknown): TenureError {
  return createTenureError('fence-not-ready', message, cause === undefined ? {} : { cause })
}

function messageOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : String(errorCode(error))
}
