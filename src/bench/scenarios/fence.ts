/**
 * Fence: the same small transaction with and without its fence, at each kind of resource, one at a time
 * and sixteen at once on one partition, the kinds in short turns of one measurement. PostgreSQL and Redis flush
 * to disk before they answer. The limit is the least that any fence adds (`raw-fences.ts`).
 */
import { join } from 'node:path'
import { startPostgresServer } from '../../dev/postgres-server.ts'
import { startRedisServer } from '../../dev/redis-server.ts'
import type { BenchProcess } from '../bench-processes.ts'
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { LIMIT, TENURE } from '../evaluate.ts'
import type { FenceKind, ResourceName } from '../raw-fences.ts'

const RESOURCES: readonly ResourceName[] = ['PostgreSQL', 'Redis', 'etcd', 'HTTP']
const UNFENCED = 'without a fence'
const METRIC = 'one transaction'
const LEAST = {
  PostgreSQL:
    'two statements with BEGIN that share a lock with seals and read the fence, with no refusal',
  Redis: 'one script that compares one key and runs the command',
  etcd: 'one compare in the transaction',
  HTTP: 'one header there and one back, compared as text',
} as const

export const fence: Scenario = {
  name: 'fence',
  title: 'a transaction behind its fence',
  async *cases(context) {
    const [one] = (await context.processes.take(1)) as [BenchProcess]
    for (const resource of RESOURCES) {
      context.progress(`fence: ${resource}`)
      const server = await startResource(context, resource)
      // Whatever breaks, the server ends: one that is left keeps this process from ending.
      try {
        await one.call('fenceOpen', { resource, url: server.url })
        for (const lanes of [1, 16]) yield await openCase(context, one, resource, lanes)
      } finally {
        await one.call('fenceClose', null).catch(() => {})
        await server.stop()
      }
    }
  },
}

async function openCase(
  context: BenchContext,
  one: BenchProcess,
  resource: ResourceName,
  lanes: number,
): Promise<BenchCase> {
  const forMs = context.quick ? 500 : 1000
  const measureAll = () => one.call('fenceMeasure', { lanes, forMs })
  // Once for nothing: all are cold.
  let times = measureAll()
  await times
  let measured = -1
  const measure = async (kind: FenceKind, round: number): Promise<Figures> => {
    // All kinds together, when the first of them has its turn.
    if (round !== measured) times = measureAll()
    measured = round
    return [{ metric: METRIC, unit: 'ms', values: (await times)[kind] }]
  }
  const bound = { contender: LIMIT, why: LEAST[resource] }
  return {
    name: `${resource}, ${lanes} at once`,
    rounds: context.quick ? 5 : 10,
    contenders: [
      { name: TENURE, measure: (round) => measure('fenced', round) },
      { name: UNFENCED, measure: (round) => measure('unfenced', round) },
      { name: LIMIT, measure: (round) => measure('least', round) },
    ],
    comparisons: [
      { metric: METRIC, statistic: 'p50', against: UNFENCED, target: { atMost: 1.15 }, bound },
      { metric: METRIC, statistic: 'p50', against: LIMIT, target: null },
      { metric: METRIC, statistic: 'p99', against: UNFENCED, target: null },
    ],
    rivalSettings: null,
  }
}

async function startResource(
  { folder, servers }: BenchContext,
  resource: ResourceName,
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const directory = join(folder, resource)
  switch (resource) {
    case 'PostgreSQL':
      // The demo's server does not flush.
      return startPostgresServer({ directory, extraArgs: ['-c', 'fsync=on'] })
    case 'Redis':
      return startRedisServer({ directory })
    case 'etcd':
      return { url: servers.etcd.endpoints[0] ?? '', stop: async () => {} }
    case 'HTTP':
      return { url: '', stop: async () => {} }
    default:
      return resource satisfies never
  }
}
