/** The PostgreSQL fence on a real server: what it locks, counts, retries and refuses. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { isTenureError } from '../../src/core/tenure-error.ts'
import {
  createPostgresFence,
  migrate,
  type PostgresIsolation,
  readRefusals,
} from '../../src/fence/postgres.ts'
import { eventually } from '../support/eventually.ts'
import { connectPostgres, createDatabase, startPostgres } from '../support/postgres.ts'
import type { CleanUp } from '../support/servers.ts'
import { SESSION_B, sealedOf, tokenOf } from './tokens.ts'

const server = await startPostgres({ after })

async function makeWorld(cleanUp: CleanUp) {
  const database = await createDatabase(server)
  const pool = connectPostgres(cleanUp, database)
  await migrate(pool)
  await pool.query('create table notes (text text)')
  // Of its own, so that an open transaction does not keep the pool from ending.
  const connect = async () => {
    const client = new Client({ connectionString: database.url })
    cleanUp.after(() => client.end())
    await client.connect()
    return client
  }
  const notes = async () =>
    (await pool.query<{ text: string }>('select text from notes order by text')).rows.map(
      ({ text }) => text,
    )
  return { database, pool, connect, notes }
}

const OLD = tokenOf(7)
const NEW = tokenOf(8, { session: SESSION_B })

const barrier = () => {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

test('migrate, called again and by several at once, changes nothing that stands', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await Promise.all([migrate(pool), migrate(pool), migrate(pool)])
  const fence = createPostgresFence(pool)
  assert.deepEqual(await fence.seal(OLD), { ok: true })
  await migrate(pool)
  const outcome = await fence.guard(OLD, async () => 'done')
  assert.deepEqual(outcome, { ok: true, value: 'done' })
})

test('tables in a schema of their own are found there only', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool, { schema: 'Fences' })
  assert.deepEqual(await createPostgresFence(pool, { schema: 'Fences' }).seal(OLD), { ok: true })
  await assert.rejects(createPostgresFence(pool).seal(OLD), (error) =>
    isTenureError(error, 'fence-not-ready'),
  )
})

test('two effects of one partition run at the same time', async (t) => {
  const { pool } = await makeWorld(t)
  const fence = createPostgresFence(pool)
  await fence.seal(OLD)
  const met = [barrier(), barrier()] as const
  // Each waits inside its transaction for the other to be inside too.
  const both = await Promise.all([
    fence.guard(OLD, async () => {
      met[0].open()
      await met[1].opened
      return 'first'
    }),
    fence.guard(OLD, async () => {
      met[1].open()
      await met[0].opened
      return 'second'
    }),
  ])
  assert.deepEqual(both, [
    { ok: true, value: 'first' },
    { ok: true, value: 'second' },
  ])
})

test('a seal is not starved by an old owner whose effects overlap without end', async (t) => {
  const { database, pool } = await makeWorld(t)
  const crowd = createPostgresFence(connectPostgres(t, database, { max: 6 }))
  const fence = createPostgresFence(pool)
  await fence.seal(OLD)
  let refused = 0
  let applied = 0
  const overlap = async () => {
    for (;;) {
      const outcome = await crowd.guard(OLD, (client) => client.query('select pg_sleep(0.02)'))
      if (!outcome.ok) break
      applied += 1
    }
    refused += 1
  }
  const running = Promise.all([overlap(), overlap(), overlap(), overlap(), overlap(), overlap()])
  await eventually(() => applied > 12, { timeoutMs: 20_000, what: 'overlapping effects' })
  assert.deepEqual(await fence.seal(NEW), { ok: true })
  await running
  assert.equal(refused, 6)
})

const LEVELS: readonly PostgresIsolation[] = ['read committed', 'repeatable read', 'serializable']

for (const isolation of LEVELS) {
  test(`a snapshot taken before a seal does not let the old token through under ${isolation}`, async (t) => {
    const { pool, connect, notes } = await makeWorld(t)
    const fence = createPostgresFence(pool)
    await fence.seal(OLD)
    const client = await connect()
    await client.query(`begin isolation level ${isolation}`)
    await client.query('select count(*) from notes')
    await fence.seal(NEW)
    const write = async () => {
      await fence.check(client, OLD)
      await client.query("insert into notes values ('stale')")
      await client.query('commit')
    }
    await assert.rejects(write(), (error) => {
      // A stale snapshot is PostgreSQL's to refuse; a fresh one shows the new owner.
      if (isolation === 'read committed') return isTenureError(error, 'fence-refused')
      return (error as { code?: string }).code === '40001'
    })
    await client.query('rollback')
    assert.deepEqual(await notes(), [])
  })

  test(`an effect that loses against others runs again under ${isolation}`, async (t) => {
    const { pool } = await makeWorld(t)
    await pool.query('create table counter as select 0 as count')
    const fence = createPostgresFence(pool, { isolation })
    await fence.seal(OLD)
    const add = () =>
      fence.guard(OLD, (client) => client.query('update counter set count = count + 1'))
    const outcomes = await Promise.all(Array.from({ length: 5 }, add))
    assert.ok(outcomes.every(({ ok }) => ok))
    const { rows } = await pool.query('select count from counter')
    assert.deepEqual(rows, [{ count: 5 }])
  })
}

test('refusals name the highest and are counted although their transactions are rolled back', async (t) => {
  const { pool, notes } = await makeWorld(t)
  const fence = createPostgresFence(pool)
  const note = (token = OLD) =>
    fence.guard(token, (client) => client.query("insert into notes values ('x')"))
  assert.deepEqual(await note(), { ok: false, reason: 'unsealed', highest: null })
  await fence.seal(OLD)
  await fence.seal(NEW)
  const stale = { ok: false, reason: 'stale', highest: sealedOf(NEW) }
  assert.deepEqual(await note(), stale)
  assert.deepEqual(await fence.seal(OLD), stale)
  assert.deepEqual(await note({ ...NEW, session: OLD.session }), stale)
  assert.deepEqual(await readRefusals(pool), { stale: 3, unsealed: 1 })
  assert.deepEqual(await notes(), [])
})

test('other languages use the SQL functions: a refusal aborts their transaction', async (t) => {
  const { pool, connect, notes } = await makeWorld(t)
  const place = "'orders', 3, 1764440000"
  await pool.query(`select tenure_seal(${place}, 7, '00000000000000aa')`)
  await pool.query(`select tenure_seal(${place}, 8, '00000000000000aa')`)
  for (const verb of ['call tenure_hold', 'select tenure_guard']) {
    const client = await connect()
    await client.query('begin')
    await client.query(`${verb}(${place}, 8, '00000000000000aa')`)
    await client.query("insert into notes values ('before the check')")
    await assert.rejects(
      client.query(`${verb}(${place}, 7, '00000000000000aa')`),
      (error: { code?: string; detail?: string }) =>
        error.code === 'TN001' && error.detail?.includes('"generation" : 8') === true,
      verb,
    )
    assert.equal((await client.query('commit')).command, 'ROLLBACK', verb)
  }
  assert.deepEqual(await notes(), [])
  assert.deepEqual(await readRefusals(pool), { stale: 2, unsealed: 0 })
})

test('the SQL functions, called with nulls or nonsense, refuse or fail and raise nothing', async (t) => {
  const { pool } = await makeWorld(t)
  const session = "'00000000000000aa'"
  await pool.query(`select tenure_seal('orders', 3, 1764440000, 7, ${session})`)
  const nonsense = [
    `null, 3, 1764440000, 7, ${session}`,
    `'orders', null, 1764440000, 7, ${session}`,
    `'orders', 3, null, 7, ${session}`,
    `'orders', 3, 1764440000, null, ${session}`,
    `'orders', 3, 1764440000, 7, null`,
    `'orders', 3, 1764440000, 9, 'AA'`,
    `'orders', 3, 1764440000, 9, ''`,
  ]
  for (const words of nonsense) {
    await assert.rejects(pool.query(`call tenure_hold(${words})`), { code: /^TN00[12]$/ }, words)
    await assert.rejects(pool.query(`select tenure_guard(${words})`), { code: /^TN00[12]$/ }, words)
    await assert.rejects(pool.query(`select tenure_seal(${words})`), words)
  }
  const { rows } = await pool.query('select partition, generation, session from tenure_fence')
  assert.deepEqual(rows, [{ partition: 3, generation: '7', session: '00000000000000aa' }])
})

test('an owner that stands still inside its transaction holds up a seal only for the idle time', async (t) => {
  const { pool, notes } = await makeWorld(t)
  const paused = createPostgresFence(pool, { idleTimeoutMs: 300 })
  const fence = createPostgresFence(pool)
  await paused.seal(OLD)
  const inside = barrier()
  const resumed = barrier()
  const late = paused.guard(OLD, async (client) => {
    await client.query("insert into notes values ('late')")
    inside.open()
    await resumed.opened
  })
  await inside.opened
  assert.deepEqual(await fence.seal(NEW), { ok: true })
  resumed.open()
  await assert.rejects(late, (error) => isTenureError(error, 'store-unreachable'))
  assert.deepEqual(await notes(), [])
  assert.deepEqual(await fence.guard(NEW, async () => 1), { ok: true, value: 1 })
})

test('an effect that swallows a failed statement is an error and leaves nothing', async (t) => {
  const { pool, notes } = await makeWorld(t)
  const fence = createPostgresFence(pool)
  await fence.seal(OLD)
  const swallowing = fence.guard(OLD, async (client) => {
    await client.query("insert into notes values ('half')")
    await client.query('select * from missing').catch(() => {})
  })
  await assert.rejects(swallowing, (error) => isTenureError(error, 'conflict'))
  assert.deepEqual(await notes(), [])
})

test('an error of the effect passes as it is and the connection serves again', async (t) => {
  const { database } = await makeWorld(t)
  const pool = connectPostgres(t, database, { max: 1 })
  const fence = createPostgresFence(pool)
  await fence.seal(OLD)
  const failure = new Error('the effect failed')
  const failing = fence.guard(OLD, async () => {
    throw failure
  })
  await assert.rejects(failing, failure)
  const missing = fence.guard(OLD, (client) => client.query('select * from missing'))
  await assert.rejects(missing, (error: { code?: string }) => error.code === '42P01')
  assert.deepEqual(await fence.guard(OLD, async () => 1), { ok: true, value: 1 })
  assert.equal(pool.totalCount, 1)
})
