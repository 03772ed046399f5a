/**
 * Plan: the PostgreSQL fence behind PgBouncer, which lends a connection for one transaction: clients outnumber
 * connections, so each takes what another has just left. Where PgBouncer is not installed this is skipped.
 */
import assert from 'node:assert/strict'
import { accessSync, chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findFreePorts, startServerProcess } from '../../src/dev/servers-process.ts'
import {
  createPostgresFence,
  fencedTransaction,
  migrate,
  type PostgresIsolation,
  readCheckpoint,
} from '../../src/fence/postgres.ts'
import { connectPostgres, createDatabase, startPostgres } from '../support/postgres.ts'
import { type CleanUp, temporaryFolder } from '../support/servers.ts'
import { SESSION_B, sealedOf, tokenOf } from './tokens.ts'

const PROGRAM = '/usr/sbin/pgbouncer'
const CONNECTIONS = 3
const CLIENTS = 8
const OLD = tokenOf(7)
const NEW = tokenOf(8, { session: SESSION_B })

const options = { skip: isInstalled() ? false : 'PgBouncer is not installed' }

function isInstalled(): boolean {
  try {
    accessSync(PROGRAM)
    return true
  } catch {
    return false
  }
}

/** A pool of the database through PgBouncer in the mode. */
async function connectPooled(cleanUp: CleanUp, mode: 'transaction' | 'statement') {
  const server = await startPostgres(cleanUp)
  const { url } = await createDatabase(server)
  const folder = await temporaryFolder(cleanUp)
  const [port = 0] = await findFreePorts(1)
  const users = join(folder, 'users.txt')
  const settings = join(folder, 'pgbouncer.ini')
  const { port: target, pathname } = new URL(url)
  const database = pathname.slice(1)
  writeFileSync(users, '"postgres" ""\n')
  writeFileSync(
    settings,
    [
      ...['[databases]', `${database} = host=127.0.0.1 port=${target}`, '[pgbouncer]'],
      ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir ='],
      ...['auth_type = trust', `auth_file = ${users}`, `pool_mode = ${mode}`],
      ...[`default_pool_size = ${CONNECTIONS}`, ''],
    ].join('\n'),
  )
  // It does not run as root, and must read what is in the folder.
  chmodSync(folder, 0o755)
  const pooled = `postgres://postgres@127.0.0.1:${port}/${database}`
  const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : []
  const pooler = await startServerProcess({
    name: 'pgbouncer',
    program: PROGRAM,
    args: [...user, settings],
    ports: [port],
    logFile: join(folder, 'pgbouncer.log'),
    isReady: () => answers(pooled),
  })
  cleanUp.after(() => pooler.stop())
  return connectPostgres(cleanUp, { url: pooled }, { max: CLIENTS })
}

async function answers(url: string): Promise<boolean> {
  const callbacks: (() => void | Promise<void>)[] = []
  const pool = connectPostgres({ after: (callback) => callbacks.push(callback) }, { url })
  try {
    await pool.query('select 1')
    return true
  } catch {
    return false
  } finally {
    for (const callback of callbacks) await callback()
  }
}

test(
  'clients share fewer connections, transaction by transaction, and every promise holds',
  options,
  async (t) => {
    const pool = await connectPooled(t, 'transaction')
    await migrate(pool)
    await pool.query('create table notes (text text)')
    const fence = createPostgresFence(pool)
    await fence.seal(OLD)
    const levels: readonly PostgresIsolation[] = [
      'read committed',
      'repeatable read',
      'serializable',
    ]
    const apply = (index: number, token = OLD) => {
      const isolation = levels[index % levels.length] ?? 'read committed'
      return fencedTransaction(
        pool,
        token,
        { idempotencyKey: `${index < 40 ? index % 20 : index}`, isolation },
        (client) => client.query('insert into notes values ($1)', [index]),
      )
    }
    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => apply(index)))
    assert.equal(outcomes.filter((outcome) => outcome.ok && outcome.applied).length, 20)
    assert.ok(outcomes.every(({ ok }) => ok))

    const racing = Array.from({ length: 40 }, (_, index) => apply(100 + index))
    const sealed = await fence.seal(NEW)
    const raced = await Promise.all(racing)
    assert.deepEqual(sealed, { ok: true })
    const late = await fencedTransaction(pool, OLD, { checkpoint: 5 }, async () =>
      assert.fail('late'),
    )
    assert.deepEqual(late, { ok: false, reason: 'stale', highest: sealedOf(NEW) })
    assert.equal(await readCheckpoint(pool, NEW), 0)
    const applied = [...outcomes, ...raced].filter(
      (outcome) => outcome.ok && outcome.applied,
    ).length
    const notes = await pool.query('select count(*)::int as count from notes')
    assert.deepEqual(notes.rows, [{ count: applied }])
    const { rows } = await pool.query(
      "select count(*)::int as held from pg_locks where locktype = 'advisory'",
    )
    assert.deepEqual(rows, [{ held: 0 }], 'no lock stays with a connection that others use')
  },
)

test(
  'a pooler that lends a connection for a statement only is an error, and nothing is written',
  options,
  async (t) => {
    const pool = await connectPooled(t, 'statement')
    await assert.rejects(migrate(pool), {
      code: 'fence-not-ready',
      message: /pool_mode = transaction/,
    })
  },
)
