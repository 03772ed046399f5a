/**
 * Plan: worker processes are killed, paused beyond their TTL and moved at random while keyed messages go
 * through them into PostgreSQL. The verdict comes from the table of effects, whose ids PostgreSQL gives,
 * from what the stream acknowledged to the publisher, and from the durable consumers as the server sees
 * them; no worker writes any of these.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'nats'
import type { Pool } from 'pg'
import {
  connectStreams,
  createPublisher,
  ensureWorkStreams,
} from '../../../src/composition/work.ts'
import { makeTurmoil } from '../../../src/dev/turmoil.ts'
import { migrate, readRefusals } from '../../../src/fence/postgres.ts'
import { eventually } from '../../support/eventually.ts'
import { connectPostgres, startPostgres } from '../../support/postgres.ts'
import { startTurmoilWorld, type TurmoilWorld } from './turmoil-world.ts'

const PREFIX = 'orders'
const MESSAGES = 3000
const KEYS = 100
const PER_SECOND = 100
const TURMOIL_MS = 30_000
const SETTINGS = { partitions: 8, leaseTtlMs: 3000, marginMs: 600, fenced: true }
const LOOK_EVERY_MS = 300
const DONE_TIMEOUT_MS = 150_000
const EFFECTS = `create table effects (
  id bigint generated always as identity primary key, partition int, generation bigint, session text,
  key text, sequence bigint, message_id text)`

type Published = { readonly messageId: string; readonly partition: number }

type Run = {
  readonly pool: Pool
  readonly world: TurmoilWorld
  /** By sequence, as the stream acknowledged them so far. */
  readonly published: ReadonlyMap<number, Published>
}

async function runUnderTurmoil(
  t: TestContext,
  given: {
    readonly mode: 'checkpoint' | 'durable'
    readonly concurrency: number
    /** Looked at again and again meanwhile. */
    readonly look?: (run: Run) => Promise<void>
  },
): Promise<Run> {
  const seed = Math.floor(Math.random() * 2 ** 31)
  t.diagnostic(`seed ${seed}`)
  const postgres = await startPostgres(t)
  const pool = connectPostgres(t, postgres)
  await migrate(pool)
  await pool.query(EFFECTS)
  const { look = async () => {}, mode, concurrency } = given
  const world = await startTurmoilWorld(t, {
    members: ['w-1', 'w-2', 'w-3'],
    ...{ settings: SETTINGS, program: 'postgres-program.ts' },
    prepare: async ({ nats }) => {
      const streams = await connectStreams({ nats: { servers: [nats] } })
      await ensureWorkStreams(streams, { prefix: PREFIX })
      await streams.close()
      return { databaseUrl: postgres.url, prefix: PREFIX, mode, concurrency, thinkMaxMs: 25 }
    },
  })
  const over = new AbortController()
  const published = new Map<number, Published>()
  const run = { pool, world, published }
  const looking = lookUntil(over.signal, () => look(run))
  try {
    const publishing = publishAll(t, world, published)
    const turmoil = await makeTurmoil({
      ...{ workers: world.workers, partitions: SETTINGS.partitions, seed },
      ...{ groupUrl: world.groupUrl, ttlMs: SETTINGS.leaseTtlMs, say: () => {} },
      ...{ signal: AbortSignal.timeout(TURMOIL_MS), cancelled: t.signal },
    })
    await publishing
    const isDone = async () => (await distinctEffects(pool)) >= MESSAGES
    await eventually(isDone, { timeoutMs: DONE_TIMEOUT_MS, what: 'an effect of each message' })
    const of = (type: string) => turmoil.filter((line) => line.type === type).length
    t.diagnostic(`${of('kill')} kills, ${of('pause')} pauses`)
    assert.ok(of('kill') > 0 && of('pause') > 0, 'nobody was killed or paused: vacuous')
    return run
  } finally {
    over.abort()
    await looking
  }
}

async function publishAll(
  t: TestContext,
  world: TurmoilWorld,
  published: Map<number, Published>,
): Promise<void> {
  const publisher = await createPublisher({
    ...{ nats: { servers: [world.nats] }, prefix: PREFIX, partitions: SETTINGS.partitions },
  })
  t.after(() => publisher.close())
  const all: Promise<unknown>[] = []
  for (let number = 0; number < MESSAGES; number += 1) {
    const messageId = `order-${number}`
    const stored = publisher.publish(`customer ${(number * 7) % KEYS}`, messageId, { messageId })
    const note = stored.then(({ sequence, partition }) =>
      published.set(sequence, { messageId, partition }),
    )
    all.push(note)
    await delay(1000 / PER_SECOND)
  }
  await Promise.all(all)
}

async function lookUntil(signal: AbortSignal, look: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await look()
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => {})
  }
}

type Effect = {
  readonly partition: number
  readonly generation: number
  readonly session: string
  readonly key: string
  readonly sequence: number
  readonly message_id: string
}

/** In the order in which PostgreSQL numbered them, within a partition that of their transactions. */
async function effectsOf(pool: Pool): Promise<readonly Effect[]> {
  const { rows } = await pool.query(
    `select partition, generation::int, session, key, sequence::int, message_id
      from effects order by id`,
  )
  return rows
}

async function distinctEffects(pool: Pool): Promise<number> {
  const { rows } = await pool.query('select count(distinct sequence)::int as count from effects')
  return rows[0]?.count ?? 0
}

function assertNoneLost(effects: readonly Effect[], published: Run['published']): void {
  const applied = new Map(effects.map(({ sequence, message_id: id }) => [sequence, id]))
  const missing = [...published].filter(
    ([sequence, { messageId }]) => applied.get(sequence) !== messageId,
  )
  assert.deepEqual(missing, [])
  assert.equal(applied.size, published.size, 'effects of messages that nobody published')
}

function assertRisingPerKey(effects: readonly Effect[]): void {
  const last = new Map<string, number>()
  for (const { key, sequence } of effects) {
    assert.ok(sequence > (last.get(key) ?? 0), `${key}: ${sequence} after ${last.get(key)}`)
    last.set(key, sequence)
  }
}

function assertTokensNeverDecrease(effects: readonly Effect[]): void {
  const last = new Map<number, Effect>()
  for (const effect of effects) {
    const before = last.get(effect.partition)
    last.set(effect.partition, effect)
    if (before === undefined || before.generation < effect.generation) continue
    assert.deepEqual(
      [effect.generation, effect.session],
      [before.generation, before.session],
      `partition ${effect.partition}: an older token, or another writer`,
    )
  }
}

/** Each message once, in the order of its first effect. */
function firstEffects(effects: readonly Effect[]): readonly Effect[] {
  const seen = new Set<number>()
  return effects.filter(({ sequence }) => !seen.has(sequence) && seen.add(sequence))
}

for (const concurrency of [1, 4]) {
  test(`checkpoint mode into PostgreSQL, ${concurrency} at once, workers killed, paused and moved: each message is applied exactly once and in order per key`, async (t) => {
    const { pool, published } = await runUnderTurmoil(t, { mode: 'checkpoint', concurrency })
    const effects = await effectsOf(pool)
    assertNoneLost(effects, published)
    assert.equal(effects.length, published.size, 'a message was applied twice')
    assertRisingPerKey(effects)
    assertTokensNeverDecrease(effects)
    const grants = new Set(effects.map(({ partition, generation }) => `${partition}@${generation}`))
    const refusals = await readRefusals(pool)
    t.diagnostic(JSON.stringify({ effects: effects.length, grants: grants.size, refusals }))
    assert.ok(grants.size > 2 * SETTINGS.partitions, 'hardly a partition moved: vacuous')
    assert.ok(refusals.stale > 0, 'no late write met the fence: vacuous')
  })
}

test('durable mode, workers killed, paused and moved: each message has its effect, and was acknowledged only after it', async (t) => {
  let looks = 0
  const run = await runUnderTurmoil(t, {
    ...{ mode: 'durable', concurrency: 1 },
    look: async (run) => {
      looks += await assertAcknowledgedHaveEffects(run)
    },
  })
  const effects = await effectsOf(run.pool)
  assertNoneLost(effects, run.published)
  assertRisingPerKey(firstEffects(effects))
  const allAcknowledged = async () => {
    const consumers = await durableConsumers(run.world)
    return consumers.length > 0 && consumers.every(({ waiting }) => waiting === 0)
  }
  await eventually(allAcknowledged, { timeoutMs: 20_000, what: 'everything acknowledged' })
  looks += await assertAcknowledgedHaveEffects(run)
  t.diagnostic(JSON.stringify({ effects: effects.length, again: effects.length - MESSAGES, looks }))
  assert.ok(looks > MESSAGES, `${looks} acknowledged messages looked at: vacuous`)
})

type Durable = {
  readonly partition: number
  /** All of the partition's messages up to this sequence are acknowledged. */
  readonly acknowledged: number
  /** Not handed out, or not acknowledged. */
  readonly waiting: number
}

async function durableConsumers(world: TurmoilWorld): Promise<readonly Durable[]> {
  const connection = await connect({ servers: world.nats })
  try {
    const manager = await connection.jetstreamManager()
    const durables: Durable[] = []
    for await (const info of manager.consumers.list(PREFIX)) {
      const partition = Number(/^work-(\d+)$/.exec(info.name)?.[1])
      const acknowledged = info.ack_floor.stream_seq
      durables.push({ partition, acknowledged, waiting: info.num_pending + info.num_ack_pending })
    }
    return durables
  } finally {
    await connection.close()
  }
}

/** The server first, then the effects: one that is acknowledged by now must have been written before. */
async function assertAcknowledgedHaveEffects({ pool, world, published }: Run): Promise<number> {
  const consumers = await durableConsumers(world)
  const known = new Map(published)
  const done = new Set((await effectsOf(pool)).map(({ sequence }) => sequence))
  const through = new Map(consumers.map((one) => [one.partition, one.acknowledged]))
  let looked = 0
  for (const [sequence, { partition }] of known) {
    if (sequence > (through.get(partition) ?? 0)) continue
    looked += 1
    assert.ok(done.has(sequence), `${sequence} was acknowledged and has no effect`)
  }
  return looked
}
