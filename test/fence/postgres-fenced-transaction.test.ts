/** Effect, dedupe, progress and outbox of the PostgreSQL fence: together or not at all. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  createPostgresFence,
  type FencedOptions,
  fencedTransaction,
  migrate,
  type PostgresIsolation,
  pruneSent,
  readCheckpoint,
  type StoredMessage,
  takeOutbox,
} from '../../src/fence/postgres.ts'
import { connectPostgres, createDatabase, startPostgres } from '../support/postgres.ts'
import type { CleanUp } from '../support/servers.ts'
import { SESSION_B, sealedOf, tokenOf } from './tokens.ts'

const server = await startPostgres({ after })
const TOKEN = tokenOf(7)
const NEW = tokenOf(8, { session: SESSION_B })
const GROUP = { group: 'orders' }

async function makeWorld(cleanUp: CleanUp) {
  const pool = connectPostgres(cleanUp, await createDatabase(server))
  await migrate(pool)
  await pool.query('create table notes (text text)')
  const fence = createPostgresFence(pool)
  await fence.seal(TOKEN)
  const apply = (options: FencedOptions, text = 'x', token = TOKEN) =>
    fencedTransaction(pool, token, options, async (client, outbox) => {
      await client.query('insert into notes values ($1)', [text])
      await outbox.add({ topic: 'mail', payload: { text } })
      return text
    })
  const rows = async (table: string) =>
    Number((await pool.query(`select count(*) as count from ${table}`)).rows[0]?.count)
  const counts = async () => ({
    notes: await rows('notes'),
    keys: await rows('tenure_idempotency'),
    messages: await rows('tenure_outbox'),
    checkpoint: await readCheckpoint(pool, TOKEN),
  })
  return { pool, fence, apply, counts }
}

const NOTHING = { notes: 0, keys: 0, messages: 0, checkpoint: 0 }
const ONE = { notes: 1, keys: 1, messages: 1, checkpoint: 5 }

test('effect, key, checkpoint and message commit together', async (t) => {
  const { apply, counts } = await makeWorld(t)
  const outcome = await apply({ idempotencyKey: 'a', checkpoint: 5 })
  assert.deepEqual(outcome, { ok: true, applied: true, value: 'x' })
  assert.deepEqual(await counts(), ONE)
})

test('an effect that fails after all of its writes leaves none of them', async (t) => {
  const { pool, counts } = await makeWorld(t)
  const options = { idempotencyKey: 'a', checkpoint: 5 }
  const failing = fencedTransaction(pool, TOKEN, options, async (client, outbox) => {
    await client.query("insert into notes values ('x')")
    await outbox.add({ topic: 'mail', payload: 1 })
    throw new Error('at the end')
  })
  await assert.rejects(failing, /at the end/)
  assert.deepEqual(await counts(), NOTHING)
})

test('a refused token leaves nothing, and does not use its key up', async (t) => {
  const { fence, apply, counts } = await makeWorld(t)
  await fence.seal(NEW)
  const options = { idempotencyKey: 'a', checkpoint: 5 }
  const refused = await apply(options)
  assert.deepEqual(refused, { ok: false, reason: 'stale', highest: sealedOf(NEW) })
  assert.deepEqual(await counts(), NOTHING)
  assert.deepEqual(await apply(options, 'x', NEW), { ok: true, applied: true, value: 'x' })
  assert.deepEqual(await counts(), ONE)
})

test('what was applied is not applied again, by its key or by its checkpoint, under a new owner too', async (t) => {
  const { fence, apply, counts } = await makeWorld(t)
  await apply({ idempotencyKey: 'a', checkpoint: 5 })
  await fence.seal(NEW)
  const byKey = await apply({ idempotencyKey: 'a', checkpoint: 6 }, 'again', NEW)
  assert.deepEqual(byKey, { ok: true, applied: false, by: 'idempotency-key' })
  for (const checkpoint of [5, 4]) {
    const byCheckpoint = await apply({ idempotencyKey: 'b', checkpoint }, 'again', NEW)
    assert.deepEqual(byCheckpoint, { ok: true, applied: false, by: 'checkpoint' })
  }
  assert.deepEqual(await counts(), ONE)
})

const LEVELS: readonly PostgresIsolation[] = ['read committed', 'repeatable read', 'serializable']

for (const isolation of LEVELS) {
  test(`one key delivered six times at once is applied once under ${isolation}`, async (t) => {
    const { apply, counts } = await makeWorld(t)
    const options = { idempotencyKey: 'a', checkpoint: 5, isolation }
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => apply(options)))
    assert.equal(outcomes.filter((outcome) => outcome.ok && outcome.applied).length, 1)
    assert.ok(outcomes.every(({ ok }) => ok))
    assert.deepEqual(await counts(), ONE)
  })
}

test('the outbox sends each message once, in order, to senders that run at once', async (t) => {
  const { pool, apply } = await makeWorld(t)
  for (let index = 0; index < 10; index += 1) await apply({}, `note ${index}`)
  const batches: (readonly StoredMessage[])[] = []
  const drain = async () => {
    const limit = { ...GROUP, limit: 3 }
    const send = async (messages: readonly StoredMessage[]) => void batches.push(messages)
    while ((await takeOutbox(pool, limit, send)) > 0);
  }
  await Promise.all([drain(), drain()])
  await drain()
  const texts = batches.flat().map(({ payload }) => (payload as { text: string }).text)
  assert.equal(texts.length, 10)
  assert.equal(new Set(texts).size, 10)
  for (const batch of batches) {
    const ids = batch.map(({ id }) => Number(id))
    assert.deepEqual(
      ids,
      [...ids].sort((a, b) => a - b),
    )
  }
  assert.deepEqual(batches[0]?.[0]?.partition, TOKEN.partition)
})

test('a sender that fails leaves its messages to the next', async (t) => {
  const { pool, apply } = await makeWorld(t)
  await apply({})
  const failing = takeOutbox(pool, GROUP, async () => {
    throw new Error('no connection')
  })
  await assert.rejects(failing, /no connection/)
  const taken: StoredMessage[] = []
  const send = async (messages: readonly StoredMessage[]) => void taken.push(...messages)
  assert.equal(await takeOutbox(pool, { group: 'another' }, send), 0)
  assert.equal(await takeOutbox(pool, GROUP, send), 1)
  assert.equal(await takeOutbox(pool, GROUP, send), 0)
  assert.deepEqual(
    taken.map(({ topic, payload }) => ({ topic, payload })),
    [{ topic: 'mail', payload: { text: 'x' } }],
  )
})

test('pruning removes sent messages and old keys, and no message that waits', async (t) => {
  const { pool, apply, counts } = await makeWorld(t)
  await apply({ idempotencyKey: 'a' })
  await takeOutbox(pool, GROUP, async () => {})
  await apply({ idempotencyKey: 'b' })
  const kept = await pruneSent(pool, { ...GROUP, olderThanMs: 3_600_000 })
  assert.deepEqual(kept, { messages: 0, idempotencyKeys: 0 })
  const pruned = await pruneSent(pool, { ...GROUP, olderThanMs: 0 })
  assert.deepEqual(pruned, { messages: 1, idempotencyKeys: 2 })
  assert.equal((await counts()).messages, 1)
})

test('a checkpoint that lags, as where several positions are worked on at once: none is passed over, and it rises at the end', async (t) => {
  const { apply, counts, pool } = await makeWorld(t)
  const lagging = (position: number, sequence: number) =>
    apply({ idempotencyKey: `p-${position}`, checkpoint: { position, sequence } }, String(position))
  // 6 and 7 are under way; 7 is done first, and may not raise the checkpoint above 6, which is not.
  assert.equal((await lagging(5, 5)).ok, true)
  assert.deepEqual(await lagging(7, 5), { ok: true, applied: true, value: '7' })
  assert.equal(await readCheckpoint(pool, TOKEN), 5)
  // A new owner starts after 5 and meets 7 again, after 6.
  assert.deepEqual(await lagging(6, 7), { ok: true, applied: true, value: '6' })
  assert.equal(await readCheckpoint(pool, TOKEN), 7)
  assert.deepEqual(await lagging(7, 7), { ok: true, applied: false, by: 'idempotency-key' })
  await pruneSent(pool, { ...GROUP, olderThanMs: 0 })
  assert.deepEqual(await lagging(7, 7), { ok: true, applied: false, by: 'checkpoint' })
  assert.deepEqual(await counts(), { notes: 3, keys: 0, messages: 3, checkpoint: 7 })
})

test('a checkpoint that lags at 0 is none yet; one that lags without a key is refused and writes nothing', async (t) => {
  const { apply, counts } = await makeWorld(t)
  const first = { idempotencyKey: 'a', checkpoint: { position: 2, sequence: 0 } }
  assert.deepEqual(await apply(first), { ok: true, applied: true, value: 'x' })
  assert.deepEqual(await counts(), { notes: 1, keys: 1, messages: 1, checkpoint: 0 })
  await assert.rejects(
    apply({ checkpoint: { position: 3, sequence: 1 } }),
    /idempotencyKey must be/,
  )
  assert.deepEqual(await counts(), { notes: 1, keys: 1, messages: 1, checkpoint: 0 })
  // One at a time it does not lag, and needs no key.
  const alone = { checkpoint: { position: 3, sequence: 3 } }
  assert.deepEqual(await apply(alone), { ok: true, applied: true, value: 'x' })
  assert.deepEqual(await apply(alone), { ok: true, applied: false, by: 'checkpoint' })
})

test('checkpoints of two inputs of one partition, each under its name, do not hide each other', async (t) => {
  const { apply, pool } = await makeWorld(t)
  const orders = { name: 'orders', position: 9, sequence: 9 }
  const refunds = { name: 'refunds', position: 4, sequence: 4 }
  assert.deepEqual(await apply({ checkpoint: orders }), { ok: true, applied: true, value: 'x' })
  assert.deepEqual(await apply({ checkpoint: refunds }), { ok: true, applied: true, value: 'x' })
  assert.equal(await readCheckpoint(pool, TOKEN, { name: 'orders' }), 9)
  assert.equal(await readCheckpoint(pool, TOKEN, { name: 'refunds' }), 4)
  assert.equal(await readCheckpoint(pool, TOKEN), 0)
  const again = { ok: true, applied: false, by: 'checkpoint' }
  assert.deepEqual(await apply({ checkpoint: refunds }), again)
  await assert.rejects(
    apply({ checkpoint: { ...orders, name: 'n'.repeat(201) } }),
    /checkpoint.name must be/,
  )
})

test('positions of one partition with a lagging checkpoint run side by side', async (t) => {
  const { pool } = await makeWorld(t)
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const run = (position: number, sequence: number, until: Promise<void>) =>
    fencedTransaction(
      pool,
      TOKEN,
      { idempotencyKey: String(position), checkpoint: { position, sequence } },
      () => until,
    )
  const slow = run(1, 1, held)
  // Would wait for the slow one for ever if it held the checkpoint's row.
  assert.equal((await run(2, 0, Promise.resolve())).ok, true)
  letGo()
  assert.equal((await slow).ok, true)
  assert.equal(await readCheckpoint(pool, TOKEN), 1)
})
