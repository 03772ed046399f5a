/**
 * Plan: worker processes are killed, paused beyond their TTL and moved at random while 20,000 keyed
 * messages go through them into a fenced ledger. The verdict comes from the ledger's log and from what the
 * stream acknowledged, neither of which a worker writes.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  connectStreams,
  createPublisher,
  ensureWorkStreams,
  type Publisher,
} from '../../../src/composition/work.ts'
import { comparePositions } from '../../../src/core/token.ts'
import { type LedgerLine, readLedgerLines } from '../../../src/dev/ledger.ts'
import type { LedgerToken } from '../../../src/dev/ledger-book.ts'
import { machineMs } from '../../../src/dev/machine-time.ts'
import { makeTurmoil } from '../../../src/dev/turmoil.ts'
import { eventually } from '../../support/eventually.ts'
import { type DeliveryLine, readDeliveries } from './delivery-log.ts'
import { type LedgerProcess, startLedger } from './ledger-process.ts'
import { type PartitionSeen, partitionsSeen, startTurmoilWorld } from './turmoil-world.ts'

const PREFIX = 'orders'
const MESSAGES = 20_000
const KEYS = 500
const PER_SECOND = 450
const TURMOIL_MS = 60_000
const SETTINGS = { partitions: 16, leaseTtlMs: 4000, marginMs: 800, fenced: true }
const HAND_OVERS_LEAST = 100
const UNACKNOWLEDGED_LEAST = 5
/** So long that a partition's owner is mostly behind, and holds messages that it has not come to. */
const THINK_MAX_MS = 40
const EFFECT_MAX_MS = 10

type Published = {
  readonly key: string
  readonly order: string
  readonly partition: number
  readonly sequence: number
  readonly atMs: number
}

test('20,000 keyed messages, workers killed, paused and moved: each is applied exactly once and in order per key', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  t.diagnostic(`seed ${seed}`)
  let ledgerProcess: LedgerProcess = { url: '', file: '' }
  const world = await startTurmoilWorld(t, {
    members: ['w-1', 'w-2', 'w-3', 'w-4'],
    ...{ settings: SETTINGS, program: 'consumer-program.ts' },
    prepare: async ({ nats, logFolder }) => {
      const streams = await connectStreams({ nats: { servers: [nats] } })
      await ensureWorkStreams(streams, { prefix: PREFIX })
      await streams.close()
      ledgerProcess = await startLedger(t, { logFolder, effectMaxMs: EFFECT_MAX_MS })
      return { ledgerUrl: ledgerProcess.url, prefix: PREFIX, thinkMaxMs: THINK_MAX_MS }
    },
  })

  const { partitions } = SETTINGS
  const publisher = await createPublisher({
    ...{ nats: { servers: [world.nats] }, prefix: PREFIX, partitions },
  })
  t.after(() => publisher.close())
  const publishing = publishAll(publisher)
  const turmoil = await makeTurmoil({
    ...{ workers: world.workers, partitions, seed, groupUrl: world.groupUrl },
    ttlMs: SETTINGS.leaseTtlMs,
    ...{ signal: AbortSignal.timeout(TURMOIL_MS), cancelled: t.signal },
    say: () => {},
  })
  const published = await publishing
  await untilApplied(published, world.groupUrl, ledgerProcess)

  const ledger = readLedgerLines(ledgerProcess.file)
  assertExactlyOnce(published, ledger)
  assertRisingPerKey(ledger)
  assertTokensNeverDecrease(ledger)
  const handOvers = countHandOvers(readDeliveries(world.logFolder), ledger)
  const staleRefused = countStaleRefused(ledger)
  const [kills, pauses] = ['kill', 'pause'].map(
    (type) => turmoil.filter((line) => line.type === type).length,
  )
  t.diagnostic(JSON.stringify({ kills, pauses, ...handOvers, staleRefused }))
  assert.ok((kills ?? 0) > 0 && (pauses ?? 0) > 0, `${kills} kills, ${pauses} pauses: vacuous`)
  assert.ok(handOvers.busy >= HAND_OVERS_LEAST, `only ${handOvers.busy} busy hand-overs: vacuous`)
  assert.ok(staleRefused > 0, 'no stale write met the fence: vacuous')
})

/** Asked of the ledger, since its log is long to read. */
async function untilApplied(
  published: readonly Published[],
  groupUrl: string,
  ledger: LedgerProcess,
): Promise<void> {
  const isDone = async () => {
    const reply = await fetch(`${ledger.url}/state`)
    return ((await reply.json()) as { applied: number }).applied >= MESSAGES
  }
  const waiting = eventually(isDone, { timeoutMs: 200_000, what: 'every message applied' })
  await waiting.catch(async (cause: unknown) => {
    const seen = await partitionsSeen(groupUrl)
    throw new Error(describeProgress(published, readLedgerLines(ledger.file), seen), { cause })
  })
}

/** Each partition that is not done: how far it is, who owns it and for how long nothing came of it. */
function describeProgress(
  published: readonly Published[],
  ledger: readonly LedgerLine[],
  seen: readonly PartitionSeen[],
): string {
  const nowMs = machineMs()
  const lines = seen.flatMap(({ partition, generation, phase, owner }) => {
    const stored = published.filter((one) => one.partition === partition).length
    const own = ledger.filter(({ token }) => token.partition === partition)
    const applied = effectsOf(own, 'applied').length
    if (applied === stored) return []
    const last = own.at(-1)
    const lastMs = last?.type === 'effect' ? last.endMs : (last?.atMs ?? 0)
    const since = `${last?.type} of generation ${last?.token.generation} ${Math.round(nowMs - lastMs)} ms ago`
    return [
      `partition ${partition}: ${applied} of ${stored}, ${phase} by ${owner?.member} at ${generation}, ${since}`,
    ]
  })
  return `not every message was applied in time\n${lines.join('\n')}`
}

async function publishAll(publisher: Publisher): Promise<readonly Published[]> {
  const startMs = machineMs()
  const all: Promise<Published>[] = []
  while (all.length < MESSAGES) {
    const wanted = ((machineMs() - startMs) / 1000) * PER_SECOND
    while (all.length < Math.min(wanted, MESSAGES)) {
      const number = all.length
      const key = `customer ${(number * 7919) % KEYS}`
      const order = `order-${number}`
      const one = publisher
        .publish(key, order, { messageId: order })
        .then(({ partition, sequence }) => ({ key, order, partition, sequence, atMs: machineMs() }))
      all.push(one)
    }
    await delay(20)
  }
  return Promise.all(all)
}

type Effect = LedgerLine & { readonly type: 'effect' }

function effectsOf(ledger: readonly LedgerLine[], outcome: Effect['outcome']): readonly Effect[] {
  return ledger.filter((line): line is Effect => line.type === 'effect' && line.outcome === outcome)
}

function assertExactlyOnce(published: readonly Published[], ledger: readonly LedgerLine[]): void {
  assert.equal(new Set(published.map(({ sequence }) => sequence)).size, MESSAGES)
  const times = new Map<string, number>()
  for (const { input } of effectsOf(ledger, 'applied')) {
    times.set(String(input), (times.get(String(input)) ?? 0) + 1)
  }
  const missing = published.filter(({ order }) => !times.has(order))
  const doubled = [...times].filter(([, number]) => number > 1)
  assert.deepEqual(
    { missing, doubled, applied: times.size },
    {
      ...{ missing: [], doubled: [] },
      applied: MESSAGES,
    },
  )
}

function assertRisingPerKey(ledger: readonly LedgerLine[]): void {
  const last = new Map<string, number>()
  for (const { key, sequence } of effectsOf(ledger, 'applied')) {
    assert.ok(sequence > (last.get(key) ?? 0), `${key}: ${sequence} after ${last.get(key)}`)
    last.set(key, sequence)
  }
  assert.equal(last.size, KEYS)
}

function assertTokensNeverDecrease(ledger: readonly LedgerLine[]): void {
  const last = new Map<number, LedgerToken>()
  for (const { token } of effectsOf(ledger, 'applied')) {
    const before = last.get(token.partition)
    if (before !== undefined) {
      const order = comparePositions(token, before)
      const what = `partition ${token.partition}: ${JSON.stringify([before, token])}`
      assert.ok(order > 0 || (order === 0 && token.session === before.session), what)
    }
    last.set(token.partition, token)
  }
}

/**
 * Seals above an earlier one of the partition; `busy` are those at which the old owner's consumer had been
 * handed at least five messages that nobody had applied.
 */
function countHandOvers(deliveries: readonly DeliveryLine[], ledger: readonly LedgerLine[]) {
  const handed = new Map<string, DeliveryLine[]>()
  for (const line of deliveries) {
    const grant = `${line.partition}@${line.generation}`
    handed.set(grant, [...(handed.get(grant) ?? []), line])
  }
  const sealed = new Map<number, LedgerToken>()
  const appliedThrough = new Map<number, number>()
  let all = 0
  let busy = 0
  for (const line of ledger) {
    const { partition } = line.token
    if (line.type === 'effect') {
      if (line.outcome === 'applied') appliedThrough.set(partition, line.sequence)
      continue
    }
    const before = sealed.get(partition)
    sealed.set(partition, line.token)
    if (before === undefined || comparePositions(line.token, before) === 0) continue
    all += 1
    const through = appliedThrough.get(partition) ?? 0
    const unacknowledged = (handed.get(`${partition}@${before.generation}`) ?? []).filter(
      ({ sequence, atMs }) => atMs <= line.atMs && sequence > through,
    )
    if (unacknowledged.length >= UNACKNOWLEDGED_LEAST) busy += 1
  }
  return { all, busy }
}

/** Writes refused because a newer token had been sealed before. */
function countStaleRefused(ledger: readonly LedgerLine[]): number {
  const sealed = new Map<number, LedgerToken>()
  let stale = 0
  for (const line of ledger) {
    const { partition } = line.token
    if (line.type === 'sealed') sealed.set(partition, line.token)
    else if (line.outcome === 'refused') {
      const highest = sealed.get(partition)
      if (highest !== undefined && comparePositions(line.token, highest) < 0) stale += 1
    }
  }
  return stale
}
