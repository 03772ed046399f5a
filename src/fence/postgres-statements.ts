/** The calls of `tenure_seal` and `tenure_hold`, their refusals as values, and whether they are there. */
import type { ClientBase, Pool } from 'pg'
import type { Sealed } from '../core/fence.ts'
import { type SessionId, sessionId } from '../core/ids.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import { errorCode, fenceStatementError, notReady } from './postgres-errors.ts'
import { POSTGRES_SCHEMA_VERSION } from './postgres-migration.ts'
import { schemaNameOf } from './postgres-names.ts'

export type FenceRefusal = {
  readonly ok: false
  readonly reason: 'stale' | 'unsealed'
  readonly highest: Sealed | null
}

type Queryable = Pick<ClientBase, 'query'>

const STALE = 'TN001'
const UNSEALED = 'TN002'
/** The oldest PostgreSQL that is promised to work. */
const SERVER_VERSION_MIN = 12

/** How each is called. */
const VERB = { tenure_seal: 'select', tenure_hold: 'call' } as const

export type FenceCall = keyof typeof VERB

/** The call as SQL without parameters. A checked token has nothing in it that needs more than this. */
export function fenceCallSql(schema: string, call: FenceCall, token: Token): string {
  const { group, partition, incarnation, generation, session } = token
  const values = [text(group), partition, incarnation, generation, text(session)]
  return `${VERB[call]} ${schema}.${call}(${values.join(', ')})`
}

/**
 * Keeps the fence where it is for the rest of the client's transaction. Null: done.
 *
 * A refusal has aborted the client's transaction.
 * @throws TenureError `fence-not-ready`, `store-unreachable`
 */
export async function askFence(
  client: Queryable,
  schema: string,
  call: FenceCall,
  token: Token,
): Promise<FenceRefusal | null> {
  try {
    await client.query(fenceCallSql(schema, call, token))
    return null
  } catch (error) {
    const refusal = refusalIn(error)
    if (refusal === null) throw fenceStatementError(error)
    return refusal
  }
}

/** Null: the error is no refusal. */
export function refusalIn(error: unknown): FenceRefusal | null {
  const code = errorCode(error)
  if (code !== STALE && code !== UNSEALED) return null
  return { ok: false, reason: code === STALE ? 'stale' : 'unsealed', highest: highestOf(error) }
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}

/** Runs a statement on the fence's tables; what goes wrong names the remedy. */
export async function askTables<Row>(
  client: Queryable,
  text: string,
  values: readonly unknown[],
): Promise<{ readonly rows: readonly Row[]; readonly count: number }> {
  try {
    const { rows, rowCount } = await client.query(text, [...values])
    return { rows: rows as Row[], count: rowCount ?? 0 }
  } catch (error) {
    throw fenceStatementError(error)
  }
}

const CHECKED = new WeakMap<object, Map<string, Promise<void>>>()

/**
 * Asks once per pool and schema; a failure is asked again at the next use.
 *
 * @throws TenureError `fence-not-ready` (too old, a replica, no tables, tables of another version),
 *   `store-unreachable`
 */
export function checkReady(pool: Pick<Pool, 'query'>, schema: string): Promise<void> {
  const known = CHECKED.get(pool) ?? new Map<string, Promise<void>>()
  CHECKED.set(pool, known)
  const standing = known.get(schema)
  if (standing !== undefined) return standing
  const check = askReady(pool, schema)
  known.set(schema, check)
  check.catch(() => known.delete(schema))
  return check
}

type Readiness = {
  readonly server: number
  readonly shown: string
  readonly replica: boolean
  readonly installed: boolean
}

async function askReady(pool: Pick<Pool, 'query'>, schema: string): Promise<void> {
  const { rows } = await askTables<Readiness>(
    pool,
    `select current_setting('server_version_num')::int as server,
      current_setting('server_version') as shown,
      pg_is_in_recovery() as replica,
      to_regclass($1) is not null as installed`,
    [`${schema}.tenure_schema`],
  )
  const [found] = rows
  if (found === undefined) throw notReady('the server does not say what it is')
  if (found.server < SERVER_VERSION_MIN * 10_000) {
    throw notReady(
      `PostgreSQL ${found.shown} is too old: the fence needs ${SERVER_VERSION_MIN} or later, upgrade the server`,
    )
  }
  if (found.replica) throw notReady('the server is a replica: connect to the primary')
  if (!found.installed) {
    throw notReady(
      `the tables of the fence are missing in schema ${schema}: run migrate(pool), with { schema } if they belong elsewhere`,
    )
  }
  await checkTables(pool, schema)
}

async function checkTables(pool: Pick<Pool, 'query'>, schema: string): Promise<void> {
  const { rows } = await askTables<{ version: number }>(
    pool,
    `select coalesce(max(version), 0) as version from ${schema}.tenure_schema`,
    [],
  )
  const version = rows[0]?.version ?? 0
  if (version === POSTGRES_SCHEMA_VERSION) return
  const remedy = version < POSTGRES_SCHEMA_VERSION ? 'run migrate(pool)' : 'upgrade tenure here'
  throw notReady(
    `the tables of the fence are of version ${version}, and version ${POSTGRES_SCHEMA_VERSION} is understood: ${remedy}`,
  )
}

/** Refusals that the fence's functions have counted, of every user and language. */
export async function readRefusals(
  pool: Pick<Pool, 'query'>,
  options: { readonly schema?: string } = {},
): Promise<{ readonly stale: number; readonly unsealed: number }> {
  const schema = schemaNameOf(options.schema)
  await checkReady(pool, schema)
  const { rows } = await askTables<{ reason: 'stale' | 'unsealed'; count: string }>(
    pool,
    `select reason, count from ${schema}.tenure_refusals`,
    [],
  )
  const counts = { stale: 0, unsealed: 0 }
  for (const { reason, count } of rows) counts[reason] = Number(count)
  return counts
}

function highestOf(error: unknown): Sealed | null {
  const text = (error as { readonly detail?: unknown }).detail
  const value: unknown = typeof text === 'string' ? JSON.parse(text) : undefined
  if (value === null) return null
  const { incarnation, generation, session } = value as Record<keyof Sealed, unknown>
  if (typeof incarnation !== 'number' || typeof generation !== 'number') {
    throw createTenureError('invariant-broken', `a refusal names no token: ${String(text)}`)
  }
  return { incarnation, generation, session: sessionOf(session) }
}

function sessionOf(session: unknown): SessionId {
  return sessionId(String(session))
}
