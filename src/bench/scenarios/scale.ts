/**
 * Scale: the same group with more partitions and more members. Cost per partition of an acquire, heap
 * of a process per partition and member, size of etcd's database, and what an idle group asks of etcd.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { DEFAULT_KEY_PREFIX } from '../../core/keys.ts'
import type { BenchCase, BenchContext, Figure, Figures, Scenario } from '../bench-types.ts'
import { TENURE } from '../evaluate.ts'
import { joinFleet } from '../member-fleet.ts'
import { createRawEtcd } from '../raw-etcd.ts'

const SIZES = [
  { partitions: 1000, members: 16 },
  { partitions: 10_000, members: 4 },
  { partitions: 10_000, members: 16 },
  { partitions: 10_000, members: 64 },
  { partitions: 100_000, members: 16 },
]
const PROCESSES_MAX = 16
const SETTLE_MS = 500
const LEASE_TTL_MS = 30_000
/** Of the two sizes that are compared: members renew every third of the lease, so two of those. */
const IDLE_MS = 21_000
const IDLE_MEASURED = { members: 16, partitions: [1000, 100_000] }
const ALL_SERVING_TIMEOUT_MS = 300_000

type Size = (typeof SIZES)[number]
type Costs = {
  readonly perPartitionUs: number
  readonly heapBytes: number
  readonly databaseBytes: number
  readonly idlePerSecond: number | null
}

export const scale: Scenario = {
  name: 'scale',
  title: 'more partitions, more members',
  async *cases(context) {
    yield caseOf(context)
  },
}

function caseOf(context: BenchContext): BenchCase {
  const absolute = { statistic: 'median', against: null } as const
  return {
    name: 'P and members',
    rounds: context.quick ? 1 : 3,
    contenders: [{ name: TENURE, measure: (round) => measure(context, round) }],
    comparisons: [
      {
        metric: 'cost per partition, 100,000 over 10,000',
        ...absolute,
        target: { atMost: 1.2 },
      },
      { metric: 'heap per partition and member', ...absolute, target: { atMost: 300 } },
      {
        metric: 'idle requests to etcd, 100,000 partitions over 1,000',
        ...absolute,
        target: { atMost: 1.2 },
      },
    ],
    rivalSettings: null,
  }
}

async function measure(context: BenchContext, round: number): Promise<Figures> {
  const figures: Figure[] = []
  const all = new Map<string, Costs>()
  for (const size of SIZES) {
    if (size.partitions > context.partitionsMax) continue
    const name = `${size.partitions} × ${size.members}`
    context.progress(`scale: ${name}`)
    const costs = await costsOf(
      context,
      size,
      `${context.runId}-scale-${round}-${name.replaceAll(/\D+/g, '-')}`,
    )
    all.set(name, costs)
    figures.push(
      { metric: `acquire per partition, ${name}`, unit: 'µs', values: [costs.perPartitionUs] },
      { metric: `heap per partition and member, ${name}`, unit: 'B', values: [costs.heapBytes] },
      { metric: `database per partition, ${name}`, unit: 'B', values: [costs.databaseBytes] },
    )
    if (costs.idlePerSecond === null) continue
    const metric = `idle requests to etcd, ${name}`
    figures.push({ metric, unit: '1/s', values: [costs.idlePerSecond] })
  }
  const large = all.get('100000 × 16')
  const middle = all.get('10000 × 16')
  const small = all.get('1000 × 16')
  if (middle !== undefined) {
    const values = [(large ?? middle).heapBytes]
    figures.push({ metric: 'heap per partition and member', unit: 'B', values })
  }
  if (large !== undefined && middle !== undefined) {
    const values = [large.perPartitionUs / middle.perPartitionUs]
    figures.push({ metric: 'cost per partition, 100,000 over 10,000', unit: '', values })
  }
  if (large?.idlePerSecond != null && small?.idlePerSecond) {
    const values = [large.idlePerSecond / small.idlePerSecond]
    const metric = 'idle requests to etcd, 100,000 partitions over 1,000'
    figures.push({ metric, unit: '', values })
  }
  return figures
}

async function costsOf(context: BenchContext, size: Size, group: string): Promise<Costs> {
  const { partitions, members } = size
  const processes = Math.min(members, PROCESSES_MAX)
  const taken = await context.processes.take(processes)
  const heapOf = async () => {
    const used = await Promise.all(taken.map((one) => one.call('usage', null)))
    return used.reduce((sum, { heapBytes }) => sum + heapBytes, 0)
  }
  const etcd = createRawEtcd(context.servers.etcd)
  const before = { heap: await heapOf(), database: (await etcd.version()).usedBytes }
  const fleet = await joinFleet(context, {
    ...{ group, members, processes, itemMs: null },
    settings: { partitions, leaseTtlMs: LEASE_TTL_MS, settle: { firstGrantMs: SETTLE_MS } },
  })
  await fleet.allServing(ALL_SERVING_TIMEOUT_MS)
  const notes = await fleet.notes(true)
  const settledMs = Math.max(...notes.map((note) => note.sessionOpenedMs)) + SETTLE_MS
  const endedMs = Math.max(...notes.map((note) => note.lastServingMs))
  const isIdleMeasured =
    members === IDLE_MEASURED.members && IDLE_MEASURED.partitions.includes(partitions)
  const idlePerSecond = isIdleMeasured ? await idleRequests(context) : null
  const heap = (await heapOf()) - before.heap
  const database = (await etcd.version()).usedBytes - before.database
  await fleet.leave()
  await etcd.clear(`${DEFAULT_KEY_PREFIX}${group}/`, context.servers.embedded)
  etcd.close()
  return {
    perPartitionUs: ((endedMs - settledMs) * 1000) / partitions,
    heapBytes: heap / partitions / members,
    databaseBytes: database / partitions,
    idlePerSecond,
  }
}

/** Requests per second that etcd counts while nothing happens; null: it does not say. */
async function idleRequests({ servers }: BenchContext): Promise<number | null> {
  if (!servers.embedded) return null
  const url = `${servers.etcd.endpoints[0]}/metrics`
  const count = async (): Promise<number> => {
    const text = await (await fetch(url)).text()
    const all = text.matchAll(/^grpc_server_(?:started|msg_received)_total\{[^}]*\} (\S+)$/gm)
    return [...all].reduce((sum, [, value]) => sum + Number(value), 0)
  }
  const before = await count()
  await delay(IDLE_MS)
  return ((await count()) - before) / (IDLE_MS / 1000)
}
