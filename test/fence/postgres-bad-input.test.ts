/** Each wrong use of the PostgreSQL fence: one error that names the remedy, and no write. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Pool } from 'pg'
import { isTenureError, type TenureErrorCode } from '../../src/core/tenure-error.ts'
import type { Token } from '../../src/core/token.ts'
import {
  createPostgresFence,
  fencedTransaction,
  migrate,
  readCheckpoint,
  takeOutbox,
} from '../../src/fence/postgres.ts'
import { connectPostgres, createDatabase, startPostgres } from '../support/postgres.ts'
import { MALFORMED_TOKENS, tokenOf } from './tokens.ts'

const server = await startPostgres({ after })
const TOKEN = tokenOf(7)

const refusal =
  (code: TenureErrorCode, remedy: RegExp) =>
  (error: unknown): boolean =>
    isTenureError(error, code) && remedy.test(error.message)

const never = async () => {
  assert.fail('the effect ran')
}

async function fenceRows(pool: Pool): Promise<number> {
  const { rows } = await pool.query('select count(*) as count from tenure_fence')
  return Number(rows[0]?.count)
}

test('an effect that is no function is refused before anything is asked', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool)
  const fence = createPostgresFence(pool)
  await fence.seal(TOKEN)
  const expected = refusal('invalid-argument', /give a function/)
  for (const effect of [undefined, 'insert into stock values (1)', {}]) {
    await assert.rejects(fence.guard(TOKEN, effect as unknown as typeof never), expected)
  }
})

test('a malformed token is refused before anything is asked', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool)
  const fence = createPostgresFence(pool)
  for (const malformed of MALFORMED_TOKENS) {
    const token = malformed as Token
    const expected = refusal('invalid-argument', /token/)
    await assert.rejects(fence.seal(token), expected)
    await assert.rejects(fence.guard(token, never), expected)
    await assert.rejects(fencedTransaction(pool, token, {}, never), expected)
  }
  assert.equal(await fenceRows(pool), 0)
})

test('a token of another group is refused by the fence of a group', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool)
  const fence = createPostgresFence(pool, { group: 'payments' })
  const expected = refusal('invalid-argument', /orders.*payments/)
  await assert.rejects(fence.seal(TOKEN), expected)
  await assert.rejects(fence.guard(TOKEN, never), expected)
  assert.equal(await fenceRows(pool), 0)
})

test('missing tables are said, with the call that makes them, and are found once made', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  const fence = createPostgresFence(pool)
  const expected = refusal('fence-not-ready', /run migrate\(pool\)/)
  await assert.rejects(fence.seal(TOKEN), expected)
  await assert.rejects(fence.guard(TOKEN, never), expected)
  await assert.rejects(fencedTransaction(pool, TOKEN, {}, never), expected)
  await assert.rejects(readCheckpoint(pool, TOKEN), expected)
  await assert.rejects(takeOutbox(pool, { group: 'orders' }, never), expected)
  await migrate(pool)
  assert.deepEqual(await fence.seal(TOKEN), { ok: true })
  await pool.query('drop procedure tenure_hold')
  await assert.rejects(fence.guard(TOKEN, never), expected)
})

test('tables of a later version are not touched', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool)
  await pool.query('insert into tenure_schema values (2)')
  const fence = createPostgresFence(pool)
  await assert.rejects(fence.seal(TOKEN), refusal('fence-not-ready', /upgrade tenure/))
  assert.equal(await fenceRows(pool), 0)
})

test('a server that is too old, or a replica, is refused before any write', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool)
  const standIn = (facts: object) => ({
    connect: (): Promise<never> => assert.fail('a transaction began'),
    query: async () => ({ rows: [facts], rowCount: 1 }),
  })
  const facts = { server: 110_022, shown: '11.22', replica: false, installed: true }
  const cases = [
    { pool: standIn(facts), remedy: /11\.22 is too old.*12 or later, upgrade the server/ },
    {
      pool: standIn({ ...facts, server: 150_000, replica: true }),
      remedy: /connect to the primary/,
    },
  ]
  for (const { pool: stand, remedy } of cases) {
    const fence = createPostgresFence(stand as unknown as Pool)
    await assert.rejects(fence.seal(TOKEN), refusal('fence-not-ready', remedy))
    await assert.rejects(fence.guard(TOKEN, never), refusal('fence-not-ready', remedy))
  }
})

test('bad options are refused by name', async (t) => {
  const pool = connectPostgres(t, await createDatabase(server))
  await migrate(pool)
  await createPostgresFence(pool).seal(TOKEN)
  const cases = [
    [{ idempotencyKey: '' }, /idempotencyKey/],
    [{ idempotencyKey: 'k'.repeat(201) }, /idempotencyKey/],
    [{ checkpoint: 0 }, /checkpoint/],
    [{ checkpoint: 1.5 }, /checkpoint/],
    [{ schema: 'a"; drop table notes' }, /schema/],
  ] as const
  for (const [options, field] of cases) {
    const expected = refusal('invalid-argument', field)
    await assert.rejects(fencedTransaction(pool, TOKEN, options, never), expected)
  }
  assert.throws(
    () => createPostgresFence(pool, { schema: '1x' }),
    refusal('invalid-argument', /schema/),
  )
})

test('a server that is away is said to be unreachable, and serves again when it is back', async (t) => {
  const own = await startPostgres(t)
  const pool = connectPostgres(t, own)
  await migrate(pool)
  const fence = createPostgresFence(pool)
  await fence.seal(TOKEN)
  await own.kill()
  const expected = refusal('store-unreachable', /PostgreSQL/)
  await assert.rejects(fence.guard(TOKEN, never), expected)
  await own.restart()
  assert.deepEqual(await fence.guard(TOKEN, async () => 1), { ok: true, value: 1 })
})
