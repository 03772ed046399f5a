/**
 * The costs that `simulate.ts` reckons with, measured on this machine: grants of raw transactions with more and
 * more watchers, members that acquire with more and more others, observers that take in deltas.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchProcess, createBenchProcesses } from '../../src/bench/bench-processes.ts'
import { openBenchServers } from '../../src/bench/bench-servers.ts'
import type { BenchContext } from '../../src/bench/bench-types.ts'
import { clearGroup } from '../../src/bench/clear-group.ts'
import { findGrantLimit } from '../../src/bench/limit-grants.ts'
import { joinFleet } from '../../src/bench/member-fleet.ts'
import { DEFAULT_KEY_PREFIX } from '../../src/core/keys.ts'
import type { Costs } from './simulate.ts'

const WATCHERS = [2, 6, 16]
const PARTITIONS = 10_000
const FEW_PARTITIONS = 1000
const MEMBERS = [2, 10] as const
const FOLLOWERS = 16
const CHANGED = 1000
const COMMITS = 40
const SESSION_TTL_MS = 30_000
/** Of a member, heap and arrays, at 100,000 partitions: what the benchmark's `scale` shows. */
const MEMBER_BYTES_PER_PARTITION = 283

export async function measureCosts(say: (text: string) => void): Promise<Costs> {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-large-'))
  const servers = await openBenchServers({ etcd: null, nats: null }, folder)
  const processes = createBenchProcesses(null)
  const runId = `large-${Date.now().toString(36)}`
  const context: BenchContext = {
    ...{ quick: true, partitionsMax: PARTITIONS, seed: 1, runId, servers, processes, folder },
    progress: say,
  }
  try {
    return {
      ...(await grantCosts(context)),
      watchUs: await watchCost(context),
      ...(await deltaCosts(context)),
      memberBytesPerPartition: MEMBER_BYTES_PER_PARTITION,
    }
  } finally {
    await processes.close()
    await servers.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The line through the times per grant with so many watchers. */
async function grantCosts(context: BenchContext): Promise<Pick<Costs, 'grantUs' | 'deliverUs'>> {
  const points: { readonly x: number; readonly y: number }[] = []
  for (const watchers of WATCHERS) {
    context.progress(`raw grants with ${watchers} watchers`)
    const limit = await findGrantLimit(context, watchers, 'lean')
    points.push({ x: watchers, y: 1e6 / (await limit.measure(PARTITIONS)) })
  }
  const { slope, start } = lineThrough(points)
  return { grantUs: Math.max(1, start), deliverUs: slope }
}

function lineThrough(points: readonly { readonly x: number; readonly y: number }[]) {
  const mean = (of: (point: (typeof points)[number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)]
  const slope = mean((point) => (point.x - x) * (point.y - y)) / mean((point) => (point.x - x) ** 2)
  return { slope, start: y - slope * x }
}

/** What a partition costs all members together more when eight more of them hear of it. */
async function watchCost(context: BenchContext): Promise<number> {
  const [few, many] = MEMBERS
  const perPartition = async (members: number) => {
    const large = await acquireCpuMs(context, members, PARTITIONS)
    const small = await acquireCpuMs(context, members, FEW_PARTITIONS)
    return ((large - small) * 1000) / (PARTITIONS - FEW_PARTITIONS)
  }
  return ((await perPartition(many)) - (await perPartition(few))) / (many - few)
}

async function acquireCpuMs(
  context: BenchContext,
  members: number,
  partitions: number,
): Promise<number> {
  const group = `${context.runId}-acquire-${members}-${partitions}`
  const settings = { partitions, leaseTtlMs: SESSION_TTL_MS }
  const taken = await context.processes.take(members)
  context.progress(`${members} members acquire ${partitions} partitions`)
  // Once for nothing: the processes are cold.
  await acquireOnce(context, `${group}-cold`, members, settings)
  const before = await cpuMsOf(taken)
  await acquireOnce(context, group, members, settings)
  return (await cpuMsOf(taken)) - before
}

async function acquireOnce(
  context: BenchContext,
  group: string,
  members: number,
  settings: { readonly partitions: number; readonly leaseTtlMs: number },
): Promise<void> {
  const fleet = await joinFleet(context, { group, members, settings, itemMs: null })
  await fleet.allServing()
  await fleet.leave()
  await clearGroup(context, group)
}

async function deltaCosts(
  context: BenchContext,
): Promise<Pick<Costs, 'deltaUs' | 'deltaBytesPerChange' | 'snapshotBytesPerPartition'>> {
  context.progress('observers take in deltas')
  const [source, follower] = (await context.processes.take(2)) as [BenchProcess, BenchProcess]
  const { etcd, nats } = context.servers
  const group = `${context.runId}-map`
  const sizes = { partitions: PARTITIONS, members: 10 }
  await source.call('mapOpen', { group, keyPrefix: DEFAULT_KEY_PREFIX, etcd, nats, ...sizes })
  await follower.call('mapFollow', { group, nats, count: FOLLOWERS })
  const commit = { commits: COMMITS, changed: CHANGED, gapMs: 10 }
  await source.call('mapCommit', commit)
  const before = await cpuMsOf([follower])
  const { deltaBytes } = await source.call('mapCommit', commit)
  const tookMs = (await cpuMsOf([follower])) - before
  const snapshotBytes = await source.call('mapSnapshot', null)
  await follower.call('mapUnfollow', null)
  await source.call('mapClose', null)
  return {
    deltaUs: (tookMs * 1000) / (COMMITS * CHANGED * FOLLOWERS),
    deltaBytesPerChange: deltaBytes / CHANGED,
    snapshotBytesPerPartition: snapshotBytes / PARTITIONS,
  }
}

async function cpuMsOf(processes: readonly BenchProcess[]): Promise<number> {
  const used = await Promise.all(processes.map((one) => one.call('usage', null)))
  return used.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
}
