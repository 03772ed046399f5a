/**
 * `tenure dev`: etcd, nats-server, one `serve`, workers, a producer and a ledger, all as children on
 * loopback, with their data under `.tenure/`. Nothing is left behind, whatever ends this process.
 *
 *   start servers → ledger → serve → producer, workers → banner → until Ctrl-C → stop in reverse
 *   with --for: → trouble for that long → producer stopped → drained → report → stop
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { DevOptions } from '../cli/commands.ts'
import { DEV_ENVIRONMENT_FILE } from '../cli/dev-environment.ts'
import { EXIT } from '../cli/exit-codes.ts'
import { groupName } from '../core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../core/keys.ts'
import { createTenureError } from '../core/tenure-error.ts'
import { createEtcdStore } from '../etcd/etcd-store.ts'
import { jetStreamOver } from '../nats/jetstream.ts'
import { openNatsLink } from '../nats/nats-link.ts'
import { bannerLines } from './banner.ts'
import { startRole, startTenure } from './children.ts'
import { followHistory, type History } from './history.ts'
import { readLedgerLines } from './ledger.ts'
import { ORDERS_STREAM, ordersSubject, readPublished } from './producer.ts'
import { type DemoReport, reportOf, type TurmoilLine } from './report.ts'
import { startEtcdServer, startNatsServer } from './servers.ts'
import { findFreePorts, type ServerProcess } from './servers-process.ts'
import { makeTurmoil } from './turmoil.ts'

const GROUP = 'demo'
const USUAL_PORT = 7300
const READY_TIMEOUT_MS = 60_000
const DRAIN_TIMEOUT_MS = 60_000
/** Short, so that a demo shows a fail-over while one watches. */
const TTL_MS = 4000
const MARGIN_MS = 800
const ORDERS_PER_SECOND = 200
const EFFECT_MAX_MS = 180

type Demo = {
  readonly serve: ServerProcess
  readonly producer: ServerProcess
  readonly workers: ReadonlyMap<string, ServerProcess>
  readonly url: string
  readonly ledgerUrl: string
  readonly etcd: string
  readonly nats: string
  readonly listFile: string
  readonly ledgerFile: string
  /** Written at the end of a run under load: grants, sessions, kills and pauses. */
  readonly historyFile: string
  readonly history: History
}

/** Exit code 0; with `forMs`, 1 when the report has a failure, 130 when it was interrupted. */
export async function runDev(options: DevOptions, interrupted: AbortSignal): Promise<number> {
  const folder = resolve('.tenure')
  const data = join(folder, 'dev')
  rmSync(data, { recursive: true, force: true })
  mkdirSync(data, { recursive: true })
  const endings: (() => Promise<void>)[] = [
    async () => rmSync(DEV_ENVIRONMENT_FILE, { force: true }),
  ]
  try {
    const demo = await startDemo(options, data, endings)
    if (options.forMs === null) {
      for (const line of bannerLines(demo, GROUP, options.partitions)) console.log(line)
      if (!interrupted.aborted)
        await new Promise((end) => interrupted.addEventListener('abort', end))
      return 0
    }
    return await runUnderLoad(options, options.forMs, demo, interrupted)
  } finally {
    for (const end of endings.reverse()) await end().catch(() => {})
  }
}

async function startDemo(
  options: DevOptions,
  data: string,
  endings: (() => Promise<void>)[],
): Promise<Demo> {
  const started = async (server: Promise<ServerProcess>): Promise<ServerProcess> => {
    const handle = await server
    endings.push(() => handle.stop())
    return handle
  }
  const logFolder = join(data, 'logs')
  const etcd = await startEtcdServer({ directory: join(data, 'etcd') })
  endings.push(() => etcd.stop())
  const nats = await startNatsServer({ directory: join(data, 'nats'), jetStream: true })
  endings.push(() => nats.stop())
  await createOrdersStream(nats.url)
  const [freePort = 0, ledgerPort = 0] = await findFreePorts(2)
  const port = options.port ?? ((await isFree(USUAL_PORT)) ? USUAL_PORT : freePort)
  const url = `http://127.0.0.1:${port}`
  const ledgerUrl = `http://127.0.0.1:${ledgerPort}`
  const ledgerFile = join(data, 'ledger.jsonl')
  const listFile = join(data, 'published.jsonl')
  writeFileSync(
    DEV_ENVIRONMENT_FILE,
    JSON.stringify({
      ...{ url, group: GROUP, etcd: [etcd.endpoint], nats: [nats.url], ledger: ledgerUrl },
      pid: process.pid,
    }),
  )
  await started(
    startRole(
      'ledger',
      { group: GROUP, port: ledgerPort, logFile: ledgerFile, effectMaxMs: EFFECT_MAX_MS },
      {
        name: 'ledger',
        logFolder,
        ports: [ledgerPort],
        isReady: () => answers(`${ledgerUrl}/state`),
      },
    ),
  )
  const store = createEtcdStore({ endpoints: [etcd.endpoint] })
  const history = followHistory(store, groupKeys(DEFAULT_KEY_PREFIX, groupName(GROUP)))
  endings.push(async () => {
    history.close()
    await store.close()
  })
  const settings = groupSettings(options)
  const environment = { TENURE_HTTP_TOKEN: undefined, TENURE_LOG_FORMAT: 'json' }
  const serve = await started(
    startTenure(['serve', '--port', String(port), ...settings], {
      ...{ name: 'serve', logFolder, ports: [port], environment },
      isReady: () => answers(`${url}/readyz`),
    }),
  )
  const workers = new Map<string, ServerProcess>()
  const starting = Array.from({ length: options.workers }, async (_, index) => {
    const name = `w-${index + 1}`
    const words = ['worker', '--member', name, ...settings]
    const isReady = async () => true
    workers.set(name, await started(startTenure(words, { name, logFolder, environment, isReady })))
  })
  await Promise.all(starting)
  await untilServing(url, options.partitions)
  const producer = await started(
    startRole(
      'producer',
      {
        nats: [nats.url],
        partitions: options.partitions,
        ordersPerSecond: ORDERS_PER_SECOND,
        keys: 1000,
        listFile,
      },
      { name: 'producer', logFolder, isReady: async () => true },
    ),
  )
  const sorted = new Map([...workers].sort(([a], [b]) => (a < b ? -1 : 1)))
  const servers = { etcd: etcd.endpoint, nats: nats.url }
  const files = { listFile, ledgerFile, historyFile: join(data, 'history.jsonl') }
  return { serve, producer, workers: sorted, url, ledgerUrl, ...servers, ...files, history }
}

/** What the user asked for wins over the demo's own settings. */
function groupSettings(options: DevOptions): readonly string[] {
  const asked = options.config.settings
  return [
    '--fenced',
    `--partitions=${options.partitions}`,
    `--lease-ttl=${asked.leaseTtlMs ?? TTL_MS}ms`,
    `--margin=${asked.marginMs ?? MARGIN_MS}ms`,
  ]
}

async function runUnderLoad(
  options: DevOptions,
  forMs: number,
  demo: Demo,
  interrupted: AbortSignal,
): Promise<number> {
  const startMs = performance.now()
  const say = (line: string) => {
    console.log(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${line}`)
  }
  const seed = options.seed ?? Math.floor(Math.random() * 2 ** 31)
  console.log(`Demo under load for ${forMs / 1000} s, seed ${seed}: ${demo.url}`)
  // A timer of one's own: a timeout inside `AbortSignal.any` can be collected before it fires.
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), forMs)
  interrupted.addEventListener('abort', () => over.abort(), { once: true })
  const turmoil = await makeTurmoil({
    workers: demo.workers,
    partitions: options.partitions,
    seed,
    ttlMs: options.config.settings.leaseTtlMs ?? TTL_MS,
    groupUrl: `${demo.url}/v1/groups/${GROUP}`,
    signal: over.signal,
    cancelled: interrupted,
    say,
  })
  clearTimeout(timer)
  if (interrupted.aborted) return EXIT.interrupted
  await demo.producer.stop()
  say('producer stopped, draining')
  const published = readPublished(demo.listFile)
  await untilApplied(demo, published.length)
  const evidence = evidenceOf(demo, published, turmoil)
  demo.history.save(demo.historyFile, turmoil)
  const report = reportOf(evidence)
  if (options.reportFile !== null) {
    writeFileSync(options.reportFile, `${JSON.stringify({ seed, ...report }, null, 2)}\n`)
  }
  printReport(report)
  return report.failures.length === 0 ? 0 : 1
}

function evidenceOf(
  demo: Demo,
  published: ReturnType<typeof readPublished>,
  turmoil: readonly TurmoilLine[],
) {
  return {
    published,
    ledger: readLedgerLines(demo.ledgerFile),
    history: demo.history.log(),
    turmoil,
  }
}

function printReport(report: DemoReport): void {
  const { failures, ownerlessMs, ...numbers } = report
  const words = Object.entries(numbers).map(([name, value]) => `${name} ${value}`)
  console.log(words.join(', '))
  console.log(
    `ownerless ms: p50 ${ownerlessMs.p50}, p99 ${ownerlessMs.p99}, max ${ownerlessMs.max}`,
  )
  for (const failure of failures) console.log(`FAILED: ${failure}`)
  if (failures.length === 0) console.log('passed: nothing lost, doubled, stale or overlapping')
}

async function createOrdersStream(natsUrl: string): Promise<void> {
  const link = openNatsLink({ servers: [natsUrl] })
  await link.waitConnected(READY_TIMEOUT_MS)
  await jetStreamOver(link).ensureStream({ name: ORDERS_STREAM, subjects: [ordersSubjects()] })
  await link.close()
}

function ordersSubjects(): string {
  return ordersSubject(0).replace(/0$/, '*')
}

async function untilServing(url: string, partitions: number): Promise<void> {
  await until('every partition to be served', READY_TIMEOUT_MS, async () => {
    const reply = await fetch(`${url}/v1/groups/${GROUP}`).catch(() => null)
    if (reply?.ok !== true) return false
    const { owned, notServing } = (await reply.json()) as { owned: number; notServing: number }
    return owned === partitions && notServing === 0
  })
}

/** Everything published has an effect; when it never has, the report says what is lost. */
async function untilApplied(demo: Demo, published: number): Promise<void> {
  await until('every order to be applied', DRAIN_TIMEOUT_MS, async () => {
    const reply = await fetch(`${demo.ledgerUrl}/state`).catch(() => null)
    if (reply?.ok !== true) return false
    return ((await reply.json()) as { applied: number }).applied >= published
  }).catch((error: unknown) => console.log(String(error)))
}

async function until(
  what: string,
  timeoutMs: number,
  holds: () => Promise<boolean>,
): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > end) {
      throw createTenureError(
        'timed-out',
        `waited ${timeoutMs} ms for ${what}: see .tenure/dev/logs`,
      )
    }
    await delay(50)
  }
}

async function answers(url: string): Promise<boolean> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1000) }).catch(() => null)
  return reply?.ok === true
}

async function isFree(port: number): Promise<boolean> {
  return !(await answers(`http://127.0.0.1:${port}/livez`))
}
