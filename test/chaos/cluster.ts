/** Everything that takes part in a run, started in order, and the handles that faults act on. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'pg'
import { connectStreams, ensureWorkStreams } from '../../src/composition/work.ts'
import type { ServerProcess } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { createAcceptStore } from './accept-store.ts'
import {
  DRAIN_DEADLINE_MS,
  ETCD_PORT,
  GROUP,
  HTTP_PORT,
  HTTP_TOKEN,
  type Layout,
  type NodePlace,
  PREFIX,
  placesOf,
  SETTINGS,
} from './layout.ts'
import { systemEnvironment, within } from './network.ts'
import { createNode, type Node, startInside } from './nodes.ts'
import type { ProbeInput } from './probe-program.ts'
import type { ProducerInput } from './producer-program.ts'
import { bundlePrograms } from './programs.ts'
import type { ProxyOrder, ProxyReady, ProxyTarget } from './proxy-program.ts'
import {
  etcdEndpoints,
  natsServers,
  postgresUrl,
  startEtcdMember,
  startNatsMember,
  startPostgres,
} from './servers.ts'
import type { WorkerInput } from './worker-program.ts'

export type Proxy = { order(order: ProxyOrder): void }

export type Cluster = {
  readonly layout: Layout
  readonly folder: string
  readonly nodes: readonly Node[]
  /** Of the workers that reach etcd through one. */
  readonly proxies: ReadonlyMap<string, Proxy>
  /** File with the offset of the wall clock, of the workers that have one. */
  readonly clockFiles: ReadonlyMap<string, string>
  readonly pool: Pool
  /** `serve`'s URLs of the group. */
  readonly groupUrls: readonly string[]
  readonly listFile: string
  readonly probeFile: string
  readonly producer: ServerProcess
  refusedFiles(): readonly string[]
  /** Ends everything, whatever state it is in. */
  stop(): Promise<void>
}

const READY = { timeoutMs: 90_000 }
const PROXIED = ['w-1', 'w-2']
const FAKED = ['w-3', 'w-4']
const PER_SECOND = 100
const STUCK_EVERY = 500
const THINK_MAX_MS = 160
/** Beyond a drain's deadline. */
const STUCK_MS = DRAIN_DEADLINE_MS + 1000
const BLOCK_MS = 6000

type Ending = () => Promise<unknown>

/** @param endings are run, last first, also when starting fails half-way */
export async function startCluster(
  folder: string,
  layout: Layout,
  endings: Ending[],
): Promise<Cluster> {
  mkdirSync(join(folder, 'logs'), { recursive: true })
  const nodes: Node[] = []
  const keep = async (starting: Promise<Node>) => {
    const node = await starting
    nodes.push(node)
    endings.push(() => node.process.stop())
  }
  const programs = await bundlePrograms(endings)
  await Promise.all([
    ...placesOf(layout, 'etcd').map((place) => keep(startEtcdMember(folder, layout, place))),
    ...placesOf(layout, 'nats').map((place) => keep(startNatsMember(folder, layout, place))),
    ...placesOf(layout, 'postgres').map((place) => keep(startPostgres(folder, place))),
  ])
  const pool = new Pool({ connectionString: postgresUrl(layout), max: 3 })
  // A broken connection shows in the call that uses it.
  pool.on('error', () => {})
  endings.push(() => pool.end())
  await Promise.all([createAcceptStore(pool), createStreams(layout)])
  for (const place of placesOf(layout, 'serve')) {
    await keep(startServe(folder, layout, place, programs.main))
  }
  const groupUrls = placesOf(layout, 'serve').map(
    ({ address }) => `http://${address}:${HTTP_PORT}/v1/groups/${GROUP}`,
  )
  await untilAllAnswer(groupUrls)
  const proxies = new Map<string, Proxy>()
  const clockFiles = new Map<string, string>()
  const library = findFakeTime()
  const starting = placesOf(layout, 'worker').map(async (place) => {
    const { name } = place
    let endpoints = etcdEndpoints(layout)
    if (PROXIED.includes(name)) {
      const proxied = await startProxy(layout, place, programs.proxy, endings)
      proxies.set(name, proxied.proxy)
      endpoints = proxied.endpoints
    }
    const clockFile = join(folder, `${name}.clock`)
    const isFaked = library !== null && FAKED.includes(name)
    if (isFaked) clockFiles.set(name, clockFile)
    const environment = isFaked ? fakeTime(library, clockFile) : []
    const input = { ...workerInput(folder, layout, name), etcd: endpoints }
    await keep(startWorker(folder, place, programs.worker, environment, input))
  })
  await Promise.all(starting)
  const probeFile = join(folder, 'probe.jsonl')
  const listFile = join(folder, 'published.jsonl')
  const probing: ProbeInput = { file: probeFile, etcd: etcdEndpoints(layout) }
  const probe = await startInside(folder, {
    ...{ name: 'probe', namespace: layout.hub.namespace, program: process.execPath },
    args: [programs.probe, JSON.stringify(probing)],
  })
  endings.push(() => probe.stop())
  const producer = await startProducer(folder, layout, programs.producer, listFile)
  endings.push(() => producer.stop())
  const refusedFiles = () =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.refused.jsonl'))
      .map((name) => join(folder, name))
  const stop = async () => {
    for (const end of endings.splice(0).reverse()) await end().catch(() => {})
  }
  return {
    ...{ layout, folder, nodes, proxies, clockFiles, pool, groupUrls, listFile, probeFile },
    ...{ producer, refusedFiles, stop },
  }
}

async function createStreams(layout: Layout): Promise<void> {
  const streams = await connectStreams({ nats: { servers: natsServers(layout) } })
  const settings = { prefix: PREFIX, replicas: 3, duplicateWindowMs: 600_000 }
  const check = async () => {
    await ensureWorkStreams(streams, settings)
    return true
  }
  await eventually(check, { ...READY, what: 'JetStream with three members' })
  await streams.close()
}

async function startServe(
  folder: string,
  layout: Layout,
  place: NodePlace,
  program: string,
): Promise<Node> {
  const { partitions, leaseTtlMs, marginMs, drain, acquire, settle } = SETTINGS
  const flags = [
    ...['--fenced', `--partitions=${partitions}`, `--lease-ttl=${leaseTtlMs}ms`],
    ...[`--margin=${marginMs}ms`, `--drain-deadline=${drain.deadlineMs}ms`],
    ...[`--drain-policy=${drain.policy}`, `--acquire-deadline=${acquire.deadlineMs}ms`],
    `--settle-first-grant=${settle.firstGrantMs}ms`,
    `--settle-balance=${settle.balanceMs}ms`,
  ]
  const process_ = await startInside(folder, {
    ...{ name: place.name, namespace: place.namespace, program: process.execPath },
    args: ['--enable-source-maps', program, 'serve', ...flags],
    environment: {
      TENURE_GROUP: GROUP,
      TENURE_ETCD_ENDPOINTS: etcdEndpoints(layout).join(','),
      TENURE_NATS_SERVERS: natsServers(layout).join(','),
      TENURE_HTTP_HOST: place.address,
      TENURE_HTTP_PORT: String(HTTP_PORT),
      TENURE_HTTP_TOKEN: HTTP_TOKEN,
      TENURE_LOG_FORMAT: 'json',
    },
  })
  return createNode(place, process_)
}

async function untilAllAnswer(groupUrls: readonly string[]): Promise<void> {
  for (const url of groupUrls) {
    const check = async () => (await fetch(url, { signal: AbortSignal.timeout(2000) })).ok
    await eventually(check, { ...READY, what: `${url} to answer` })
  }
}

function workerInput(folder: string, layout: Layout, member: string): WorkerInput {
  return {
    ...{ group: GROUP, member, settings: SETTINGS, prefix: PREFIX },
    ...{ etcd: etcdEndpoints(layout), nats: natsServers(layout), postgres: postgresUrl(layout) },
    ...{ thinkMaxMs: THINK_MAX_MS, stuckMs: STUCK_MS, blockMs: BLOCK_MS },
    refusedFile: join(folder, `${member}.refused.jsonl`),
  }
}

async function startWorker(
  folder: string,
  place: NodePlace,
  program: string,
  environment: readonly string[],
  input: WorkerInput,
): Promise<Node> {
  const process_ = await startInside(folder, {
    ...{ name: place.name, namespace: place.namespace, program: 'env' },
    args: [
      ...environment,
      ...[process.execPath, '--enable-source-maps', program, JSON.stringify(input)],
    ],
    environment: { TENURE_LOG_FORMAT: 'json' },
  })
  return createNode(place, process_)
}

async function startProducer(
  folder: string,
  layout: Layout,
  program: string,
  listFile: string,
): Promise<ServerProcess> {
  writeFileSync(listFile, '')
  const input: ProducerInput = {
    ...{ nats: natsServers(layout), prefix: PREFIX, partitions: SETTINGS.partitions, listFile },
    ...{ perSecond: PER_SECOND, stuckEvery: STUCK_EVERY },
  }
  return startInside(folder, {
    ...{ name: 'producer', namespace: layout.hub.namespace, program: process.execPath },
    args: ['--enable-source-maps', program, JSON.stringify(input)],
  })
}

async function startProxy(
  layout: Layout,
  place: NodePlace,
  program: string,
  endings: Ending[],
): Promise<{ readonly proxy: Proxy; readonly endpoints: readonly string[] }> {
  const targets = placesOf(layout, 'etcd').map(
    ({ address }): ProxyTarget => ({ host: address, port: ETCD_PORT }),
  )
  const [entering = '', ...rest] = within(place.namespace)
  const child: ChildProcess = spawn(
    entering,
    [...rest, process.execPath, program, JSON.stringify(targets)],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: systemEnvironment() },
  )
  endings.push(async () => child.kill('SIGKILL'))
  const [ready] = (await once(child, 'message')) as [ProxyReady]
  const endpoints = ready.ports.map((port) => `http://127.0.0.1:${port}`)
  return { proxy: { order: (order) => void child.send(order) }, endpoints }
}

/** Null: the library is not there, so no clock jumps. */
function findFakeTime(): string | null {
  const parents = ['/usr/lib', '/usr/local/lib'].filter((folder) => existsSync(folder))
  const folders = parents.flatMap((parent) => [
    parent,
    ...readdirSync(parent).map((name) => join(parent, name)),
  ])
  const found = folders.map((folder) => join(folder, 'faketime', 'libfaketime.so.1'))
  return found.find((path) => existsSync(path)) ?? null
}

/** Moves the wall clock of a process and leaves its monotonic one. */
function fakeTime(library: string, clockFile: string): readonly string[] {
  writeFileSync(clockFile, '+0\n')
  return [
    `LD_PRELOAD=${library}`,
    'FAKETIME_DONT_FAKE_MONOTONIC=1',
    `FAKETIME_TIMESTAMP_FILE=${clockFile}`,
    'FAKETIME_CACHE_DURATION=1',
  ]
}

/** For conditions that must hold before faults begin. */
export async function untilServing(cluster: Cluster): Promise<void> {
  const check = async () => {
    const reply = await fetch(cluster.groupUrls[0] ?? '', { signal: AbortSignal.timeout(2000) })
    const group = (await reply.json()) as { owned: number; notServing: number; members: number }
    const { partitions } = SETTINGS
    const members = placesOf(cluster.layout, 'worker').length
    return group.owned === partitions && group.notServing === 0 && group.members === members
  }
  await eventually(check, { ...READY, what: 'every partition served' })
}
