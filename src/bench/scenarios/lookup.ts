/**
 * Look-ups: `owner?key=` over HTTP beside a bare Fastify route that returns a constant of the same size,
 * and `observer.owner(key)` beside a hash ring that is asked for the same keys.
 */
import { type BenchProcess, createBenchProcesses } from '../bench-processes.ts'
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { LIMIT, TENURE } from '../evaluate.ts'
import { joinFleet } from '../member-fleet.ts'
import { memberOf } from '../member-names.ts'
import type { LookupFigures } from '../raw-ring.ts'
import { type ServeProcess, startServeProcess } from '../serve-process.ts'

const MEMBERS = 10
const PARTITIONS = 10_000
const CONNECTIONS = 16
const KEYS = 1000
/** Each of them gets faster for some 100,000 requests. */
const WARM_UP = { rounds: 3, forMs: 2000 }
/** Short, and many: from one turn to the next the machine gives a fifth more or less, whoever's turn it is. */
const TURN_MS = 100
const BARE = 'bare Fastify route'
const RING = 'hashring.get'

export const lookup: Scenario = {
  name: 'lookup',
  title: 'who owns this key?',
  async *cases(context) {
    const group = `${context.runId}-lookup`
    const partitions = Math.min(PARTITIONS, context.partitionsMax)
    const fleet = await joinFleet(context, {
      ...{ group, members: MEMBERS, processes: 2, itemMs: null },
      settings: { partitions, leaseTtlMs: 30_000 },
    })
    await fleet.allServing()
    const serve = await startServeProcess(context, group)
    // New to their work, as the serve process is: one that has run other scenarios answers a fifth slower.
    const fresh = createBenchProcesses(null)
    const [bare, client] = await fresh.take(2)
    try {
      yield await httpCase(context, serve, group, client as BenchProcess, bare as BenchProcess)
      const { nats } = context.servers
      const members = Array.from({ length: MEMBERS }, (_, index) => memberOf(index))
      await client?.call('lookupOpen', { group, nats, members })
      yield memoryCase(context, client as BenchProcess, false)
      yield memoryCase(context, client as BenchProcess, true)
      await client?.call('lookupClose', null)
    } finally {
      await bare?.call('bareStop', null)
      await fresh.close()
      await serve.stop()
      await fleet.leave()
      await clearGroup(context, group)
    }
  },
}

async function httpCase(
  context: BenchContext,
  serve: ServeProcess,
  group: string,
  client: BenchProcess,
  bare: BenchProcess,
): Promise<BenchCase> {
  const answer = await fetch(`${serve.url}/owner?key=customer-1`)
  const body = await answer.text()
  const barePort = await bare.call('bareStart', { body, partitions: PARTITIONS })
  const keys = Array.from({ length: KEYS }, (_, index) => `key=customer-${index}`)
  const measure = async (
    port: number,
    paths: readonly string[],
    forMs = TURN_MS,
  ): Promise<Figures> => {
    const load = { port, paths, connections: CONNECTIONS, forMs }
    const { requestsPerSecond, latenciesMs } = await client.call('httpLoad', load)
    return [
      { metric: 'requests per second', unit: '1/s', values: [requestsPerSecond] },
      { metric: 'latency', unit: 'ms', values: latenciesMs },
    ]
  }
  const owners = keys.map((key) => `/v1/groups/${group}/owner?${key}`)
  const constants = keys.map((key) => `/owner?${key}`)
  // For nothing: both are cold.
  for (let round = 0; round < WARM_UP.rounds; round += 1) {
    await measure(serve.port, owners, WARM_UP.forMs)
    await measure(barePort, constants, WARM_UP.forMs)
    await measure(barePort, owners, WARM_UP.forMs)
  }
  return {
    name: `HTTP, ${CONNECTIONS} connections`,
    rounds: context.quick ? 100 : 300,
    contenders: [
      { name: TENURE, measure: () => measure(serve.port, owners) },
      { name: BARE, measure: () => measure(barePort, constants) },
      // The same paths: one of them answers with the text of the key's partition, and does nothing else.
      { name: LIMIT, measure: () => measure(barePort, owners) },
    ],
    comparisons: [
      {
        ...{ metric: 'requests per second', statistic: 'median', against: BARE },
        target: { atLeast: 0.85 },
        bound: {
          contender: LIMIT,
          why: 'a bare Fastify route of the same path that reads the key, hashes it and sends a kept text',
        },
      },
    ],
    rivalSettings: null,
  }
}

function memoryCase(context: BenchContext, client: BenchProcess, cached: boolean): BenchCase {
  const metric = 'look-ups per second'
  let last: { readonly round: number; readonly rates: LookupFigures } | null = null
  // All are measured in the same call, in turns.
  const figure = (name: keyof LookupFigures) => async (round: number) => {
    if (last?.round !== round) last = { round, rates: await client.call('lookup', { cached }) }
    return [{ metric, unit: '1/s', values: [last.rates[name]] }]
  }
  return {
    name: cached ? 'in memory, keys that the ring has cached' : 'in memory, keys it has not',
    rounds: context.quick ? 3 : 10,
    contenders: [
      { name: TENURE, measure: figure('observer') },
      { name: RING, measure: figure('ring') },
      { name: LIMIT, measure: figure('hash') },
    ],
    comparisons: [
      {
        ...{ metric, statistic: 'median', against: RING },
        target: { atLeast: cached ? 1 : 10 },
        bound: { contender: LIMIT, why: "the hash of the key's bytes, and no look at any map" },
      },
    ],
    rivalSettings: null,
  }
}
