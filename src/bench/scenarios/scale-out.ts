/**
 * Scale-out: 4 members become 8, then 16, under load. The least that balance needs is that each old
 * member gives away what exceeds its new share; every move beyond that is needless. Throughput is that
 * of all items in the slowest three tenths of a second of the change, beside the steady state before it:
 * whole lengths of an item, or partitions that work in step would show as a change. The first time is
 * told apart: of what these processes do then, some is new to them, and the engine compiles as it goes.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { DEFAULT_KEY_PREFIX } from '../../core/keys.ts'
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { TENURE } from '../evaluate.ts'
import { firstCase } from '../first-case.ts'
import type { MemberNotes } from '../grant-notes.ts'
import { type Fleet, joinFleet } from '../member-fleet.ts'
import { memberOf } from '../member-names.ts'
import { OwnerTrail } from '../owner-trail.ts'
import { startServeProcess } from '../serve-process.ts'
import { median } from '../spread.ts'

const STEPS = [4, 8, 16]
const PARTITIONS = 1024
const ITEM_MS = 100
const LEASE_TTL_MS = 30_000
const STEADY_MS = 2000
const BUCKETS_PER_WINDOW = 3
const WARM_UP_ROUNDS = 2
const BALANCED_TIMEOUT_MS = 120_000

export const scaleOut: Scenario = {
  name: 'scale-out',
  title: `${STEPS.join(' → ')} members under load`,
  async *cases(context) {
    const partitions = Math.min(PARTITIONS, context.partitionsMax)
    yield firstCase(context, {
      ...{ scenario: 'scale-out', name: `${STEPS.join(' → ')}, the first` },
      warmUpRounds: WARM_UP_ROUNDS,
      measure: (round) => measure(context, partitions, round),
    })
    yield caseOf(context, partitions)
  },
}

function caseOf(context: BenchContext, partitions: number): BenchCase {
  return {
    name: STEPS.join(' → '),
    rounds: context.quick ? 2 : 6,
    contenders: [{ name: TENURE, measure: (round) => measure(context, partitions, round) }],
    comparisons: [
      { metric: 'needless moves', statistic: 'max', against: null, target: { atMost: 0 } },
      {
        ...{ metric: 'lowest throughput over steady state', statistic: 'median', against: null },
        target: { atLeast: 0.9 },
      },
    ],
    rivalSettings: {
      caseName: STEPS.join(' → '),
      ...{ partitions, members: 16, leaseTtlMs: LEASE_TTL_MS, itemMs: ITEM_MS },
    },
  }
}

async function measure(
  context: BenchContext,
  partitions: number,
  round: number | string,
): Promise<Figures> {
  const group = `${context.runId}-scale-out-${round}`
  const settings = { partitions, leaseTtlMs: LEASE_TTL_MS }
  await context.processes.take(16)
  const fleet = await joinFleet(context, { group, members: 4, settings, itemMs: ITEM_MS })
  await fleet.allServing()
  const serve = await startServeProcess(context, group)
  try {
    return await grow(context, fleet, { group, settings })
  } finally {
    await serve.stop()
    const all = await context.processes.take(16)
    await Promise.all(all.map((one) => one.call('leave', { members: null, force: true })))
    await clearGroup(context, group)
  }
}

async function grow(
  { processes: pool, servers }: BenchContext,
  fleet: Fleet,
  options: { readonly group: string; readonly settings: { readonly partitions: number } },
): Promise<Figures> {
  const { group, settings } = options
  const { partitions } = settings
  const trail = new OwnerTrail()
  trail.follow(await fleet.notes(true))
  const needless: number[] = []
  const tookMs: number[] = []
  const lowest: number[] = []
  for (const [step, members] of STEPS.entries()) {
    if (step === 0) continue
    const all = await pool.take(members)
    const before = STEPS[step - 1] ?? 0
    const counts = all.slice(0, before).map((one) => one.held().serving)
    await Promise.all(all.map((one) => one.call('notes', { reset: true })))
    await delay(STEADY_MS)
    const steady = await Promise.all(all.map((one) => one.call('notes', { reset: true })))
    const beganMs = performance.now()
    const common = { group, keyPrefix: DEFAULT_KEY_PREFIX, settings, itemMs: ITEM_MS }
    await Promise.all(
      all.slice(before).map((one, index) => {
        const names = [memberOf(before + index)]
        const { etcd, nats } = servers
        return one.call('join', { ...common, etcd, nats, members: names })
      }),
    )
    const share = Math.floor(partitions / members)
    const serving = () => all.reduce((sum, one) => sum + one.held().serving, 0)
    await pool.until(
      `balanced between ${members}`,
      () => serving() === partitions && all.every((one) => one.held().serving >= share),
      BALANCED_TIMEOUT_MS,
    )
    tookMs.push(performance.now() - beganMs)
    const notes = await Promise.all(all.map((one) => one.call('notes', { reset: true })))
    const moved = [...trail.follow(notes).values()].reduce((sum, count) => sum + count, 0)
    needless.push(moved - leastMoves(counts, partitions, members))
    lowest.push(lowestOver(notes, steady))
  }
  return [
    { metric: 'needless moves', unit: '', values: needless },
    { metric: 'lowest throughput over steady state', unit: '', values: lowest },
    { metric: 'joining until balanced', unit: 'ms', values: tookMs },
  ]
}

/** What the old members hold beyond their new shares; as many as can keep the larger share do. */
function leastMoves(counts: readonly number[], partitions: number, members: number): number {
  const share = Math.floor(partitions / members)
  let larger = partitions - share * members
  let moves = 0
  for (const count of [...counts].sort((a, b) => b - a)) {
    const kept = larger > 0 ? share + 1 : share
    if (count > share) larger -= 1
    moves += Math.max(0, count - kept)
  }
  return moves
}

function lowestOver(during: readonly MemberNotes[], steady: readonly MemberNotes[]): number {
  const usual = median(windowsOf(wholeBuckets(steady)))
  return usual === 0 ? 0 : Math.min(...windowsOf(wholeBuckets(during))) / usual
}

/** Items within each so many buckets that follow each other. */
function windowsOf(counts: readonly number[]): readonly number[] {
  const size = Math.min(BUCKETS_PER_WINDOW, counts.length)
  return Array.from({ length: counts.length - size + 1 }, (_, first) =>
    counts.slice(first, first + size).reduce((sum, count) => sum + count, 0),
  )
}

/** Items of all processes by bucket; the first and the last are not whole. */
function wholeBuckets(notes: readonly MemberNotes[]): readonly number[] {
  const sums = new Map<number, number>()
  for (const { buckets } of notes) {
    for (const [bucket, items] of buckets) sums.set(bucket, (sums.get(bucket) ?? 0) + items)
  }
  const numbers = [...sums.keys()]
  const counts: number[] = []
  for (let bucket = Math.min(...numbers) + 1; bucket < Math.max(...numbers); bucket += 1) {
    counts.push(sums.get(bucket) ?? 0)
  }
  return counts.length === 0 ? [0] : counts
}
