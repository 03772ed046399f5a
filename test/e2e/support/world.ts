/**
 * A group on servers of its own for one test: etcd, nats-server, a fenced resource, worker processes,
 * `tenure serve` processes, and etcd's history of it all. Whatever runs when the test is over is ended.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { TestContext } from 'node:test'
import type { GroupConfig, GroupSettings } from '../../../src/core/group-config.ts'
import { groupName } from '../../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, type GroupKeys, groupKeys } from '../../../src/core/keys.ts'
import { comparePositions } from '../../../src/core/token.ts'
import { startTenure } from '../../../src/dev/children.ts'
import { followHistory, type History } from '../../../src/dev/history.ts'
import { machineMs } from '../../../src/dev/machine-time.ts'
import type { EtcdServer, NatsServer, ServerProcess } from '../../../src/dev/servers.ts'
import { findFreePorts } from '../../../src/dev/servers-process.ts'
import { createEtcdStore } from '../../../src/etcd/etcd-store.ts'
import { createSystemClock } from '../../../src/host/system-clock.ts'
import type { Store } from '../../../src/ports/store.ts'
import { ensureGroup } from '../../../src/runtime/group-setup.ts'
import { eventually } from '../../support/eventually.ts'
import { startEtcd, startNats, temporaryFolder } from '../../support/servers.ts'
import { assertEffectsSound } from './effects.ts'
import { type FencedResource, startFencedResource } from './fenced-resource.ts'
import {
  assertGrantsSound,
  type GroupNow,
  grantsOf,
  groupNow,
  isCaughtUp,
  liveOwner,
} from './group-history.ts'
import { createServeApi, type ServeApi } from './serve-api.ts'
import { bundleWorkerProgram } from './worker-bundle.ts'
import type { WorkerProgramOptions } from './worker-lines.ts'
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts'

export const GROUP = 'orders'
const WORK_EVERY_MS = 150
/** Of tests that wait for no session to run out: a starved machine loses none either. */
export const LONG_TTL = { leaseTtlMs: 30_000 }
/** Ample: the machine may run much else. */
export const SOON = { timeoutMs: 60_000 }

export type ServeProcess = ServeApi & { readonly process: ServerProcess; log(): Promise<string> }

export type World = {
  readonly config: GroupConfig
  readonly keys: GroupKeys
  readonly etcd: EtcdServer
  readonly nats: NatsServer
  readonly store: Store
  readonly history: History
  readonly resource: FencedResource
  /** Starts a worker process; its options may name a proxy in place of a server. */
  startWorker(member: string, options?: Partial<WorkerProgramOptions>): WorkerProcess
  /** Starts several that join at the same time, so that each gets its share of a new group. */
  startTogether(
    members: readonly string[],
    optionsOf?: (member: string) => Partial<WorkerProgramOptions>,
  ): Promise<readonly WorkerProcess[]>
  startServe(options?: {
    readonly etcdEndpoint?: string
    readonly name?: string
  }): Promise<ServeProcess>
  now(): GroupNow
  /** Members that own, one per partition; null where none lives. */
  owners(): readonly (string | null)[]
  ownedBy(member: string): readonly number[]
  generation(partition: number): number
  /** `eventually`, with the state of the world in the message when it is over. */
  until: typeof eventually
  /** Until each partition has an effect under the token that stands, begun after this call. */
  progress(options?: { readonly timeoutMs: number }): Promise<void>
  /** Until everything is owned and progresses, each of the members owning something. */
  balancedOver(members: readonly string[]): Promise<void>
  /** The oracles, over everything that has happened. */
  assertSound(options?: { readonly forced?: boolean }): Promise<void>
}

export async function createWorld(t: TestContext, settings: GroupSettings = {}): Promise<World> {
  const workers: WorkerProcess[] = []
  const serves: ServerProcess[] = []
  // The first hook runs first: who uses the servers ends before they do.
  t.after(async () => {
    for (const worker of workers) worker.signal('SIGKILL')
    await Promise.all(serves.map((serve) => serve.kill()))
    await Promise.all(workers.map((worker) => worker.ended))
  })
  const program = await bundleWorkerProgram()
  const resource = await startFencedResource(t)
  const [etcd, nats, folder] = await Promise.all([startEtcd(t), startNats(t), temporaryFolder(t)])
  const store = createEtcdStore({ endpoints: [etcd.endpoint] })
  const keys = groupKeys(DEFAULT_KEY_PREFIX, groupName(GROUP))
  const config = await ensureGroup({
    ...{ store, keys, group: groupName(GROUP), clock: createSystemClock() },
    settings: {
      ...{ partitions: 12, leaseTtlMs: 6000, marginMs: 500, fenced: true },
      settle: { firstGrantMs: 1500, balanceMs: 300 },
      ...settings,
    },
  })
  const history = followHistory(store, keys)
  t.after(async () => {
    history.close()
    await store.close()
  })
  const now = () => groupNow(history.events)
  const until: World['until'] = (check, options) =>
    eventually(check, options).catch(async (error: unknown) => {
      const states = workers.map((one) => `${one.member} ${one.session()} ${describe(one)}`)
      const tails = await Promise.all(serves.map(async (one) => tailOf(one.logFile)))
      const lines = [`owners ${world.owners()}`, ...states, ...tails]
      throw new Error(`${(error as Error).message}\n${lines.join('\n')}`, { cause: error })
    })
  const partitions = Array.from({ length: config.partitions }, (_, partition) => partition)
  const world: World = {
    ...{ config, keys, etcd, nats, store, history, resource, now },
    startWorker(member, options = {}) {
      const worker = startWorkerProcess(program, {
        ...{ group: GROUP, member, workEveryMs: WORK_EVERY_MS },
        ...{ asksFirst: false, waitsForGo: false },
        etcdEndpoints: [etcd.endpoint],
        natsServers: [nats.url],
        resourceUrl: resource.url,
        ...options,
      })
      workers.push(worker)
      return worker
    },
    async startTogether(members, optionsOf = () => ({})) {
      const together = members.map((one) =>
        world.startWorker(one, { ...optionsOf(one), waitsForGo: true }),
      )
      await Promise.all(together.map((worker) => worker.started()))
      for (const worker of together) worker.send({ type: 'go' })
      await world.balancedOver(members)
      return together
    },
    async startServe({ etcdEndpoint = etcd.endpoint, name = `serve-${serves.length + 1}` } = {}) {
      const serve = await startServe(name, folder, etcdEndpoint, nats.url)
      serves.push(serve.process)
      return serve
    },
    owners: () => {
      const group = now()
      return partitions.map((partition) => liveOwner(group, partition))
    },
    ownedBy: (member) => {
      const group = now()
      return partitions.filter((partition) => liveOwner(group, partition) === member)
    },
    generation: (partition) => now().records.get(partition)?.generation ?? 0,
    async progress({ timeoutMs } = SOON) {
      const sinceMs = machineMs()
      await until(() => isProgressing(world, sinceMs), { timeoutMs, what: 'progress everywhere' })
    },
    until,
    async balancedOver(members) {
      const isBalanced = () => {
        const owners = world.owners()
        return owners.every((owner) => owner !== null) && members.every((m) => owners.includes(m))
      }
      await Promise.all(workers.map((worker) => worker.end() ?? worker.ready()))
      await until(isBalanced, { ...SOON, what: `owned by ${members}` })
      await world.progress()
    },
    async assertSound(options = {}) {
      await until(() => isCaughtUp(history.events, store, keys), {
        ...SOON,
        what: 'the whole history',
      })
      assert.ok(history.complete(), 'the history has no gap')
      assertGrantsSound(history.events, options)
      assertEffectsSound(resource, grantsOf(history.events))
    },
  }
  return world
}

function isProgressing({ resource, now, config }: World, sinceMs: number): boolean {
  const { records } = now()
  const done = new Set<number>()
  for (let index = resource.effects.length - 1; index >= 0; index -= 1) {
    const effect = resource.effects[index]
    if (effect === undefined || effect.beginMs < sinceMs) break
    const record = records.get(effect.token.partition)
    if (record === undefined || comparePositions(record, effect.token) !== 0) continue
    if (effect.outcome === 'applied') done.add(effect.token.partition)
  }
  return done.size === config.partitions
}

async function startServe(
  name: string,
  logFolder: string,
  etcdEndpoint: string,
  natsUrl: string,
): Promise<ServeProcess> {
  const [port = 0] = await findFreePorts(1)
  const url = `http://127.0.0.1:${port}`
  const process = await startTenure(['serve'], {
    ...{ name, logFolder, ports: [port], readyTimeoutMs: 90_000 },
    environment: {
      TENURE_GROUP: GROUP,
      TENURE_ETCD_ENDPOINTS: etcdEndpoint,
      TENURE_NATS_SERVERS: natsUrl,
      TENURE_HTTP_PORT: String(port),
      TENURE_HTTP_TOKEN: undefined,
      TENURE_LOG_FORMAT: 'json',
    },
    isReady: async () => {
      const reply = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1000) }).catch(
        () => null,
      )
      return reply?.ok === true
    },
  })
  const log = () => readFile(process.logFile, 'utf8')
  return { ...createServeApi(`${url}/v1/groups/${GROUP}`), process, log }
}

function describe(worker: WorkerProcess): string {
  const last = worker.lines.slice(-3).map((line) => JSON.stringify(line))
  return `${JSON.stringify(worker.end())} ${last.join(' ')} ${worker.printed()}`
}

async function tailOf(logFile: string): Promise<string> {
  return (await readFile(logFile, 'utf8')).split('\n').slice(-25).join('\n')
}
