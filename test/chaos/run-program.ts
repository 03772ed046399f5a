/**
 * The run itself, inside the bridge's namespace: `run-program.ts <input as JSON>`.
 *
 *   start → served → (trouble → healed → L4 measured)… → producer ends → all applied → judged → report
 *
 * Exit code as chaos.ts says. An interrupt ends the trouble, and everything is stopped in order.
 */
import { execFileSync } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createObserver } from '../../src/composition/create-observer.ts'
import { machineMs } from '../../src/dev/machine-time.ts'
import { findServerProgram } from '../../src/dev/servers.ts'
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import type { Store } from '../../src/ports/store.ts'
import { createSeededRandom } from '../../src/testing/seeded-random.ts'
import { isCaughtUp } from '../e2e/support/group-history.ts'
import { readAccepted, withoutEffect } from './accept-store.ts'
import { type Cluster, startCluster, untilServing } from './cluster.ts'
import { watchCpu } from './cpu-watch.ts'
import { gatherEvidence, readInputs } from './evidence-files.ts'
import { createFaults } from './faults.ts'
import { type GroupRecord, KEYS, recordGroup } from './group-record.ts'
import { judgeRun } from './judgement.ts'
import { GROUP, type Layout, placesOf } from './layout.ts'
import { watchLeader } from './leader-watch.ts'
import { watchMachineClock } from './machine-clock.ts'
import { createOperators } from './operators.ts'
import type { ChaosOptions } from './options.ts'
import { makeReport, reportLines, type Versions } from './report.ts'
import { etcdEndpoints, natsServers } from './servers.ts'
import { type Settled, untilSettled } from './settled.ts'

export type RunInput = {
  readonly options: ChaosOptions
  readonly folder: string
  readonly layout: Layout
}

/** Trouble for so long, then all is healed and L4 measured. */
const CYCLE_MS = 45_000
const APPLIED_TIMEOUT_MS = 90_000
const POLL_MS = 500
/** Who has to act in time. */
const WATCHED: readonly string[] = ['worker', 'serve', 'etcd']
const EXIT = { passed: 0, failed: 1, 'machine-too-busy': 3 } as const
const EXIT_INTERRUPTED = 130

const interrupted = new AbortController()
// Every fault under way waits for it.
setMaxListeners(0, interrupted.signal)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interrupted.abort())
}
process.exitCode = await main(JSON.parse(process.argv[2] ?? '{}') as RunInput)

async function main({ options, folder, layout }: RunInput): Promise<number> {
  const endings: (() => Promise<unknown>)[] = []
  try {
    return await runOn(options, folder, layout, endings)
  } catch (error: unknown) {
    if (interrupted.signal.aborted) return EXIT_INTERRUPTED
    throw error
  } finally {
    for (const end of endings.splice(0).reverse()) await end().catch(() => {})
  }
}

async function runOn(
  options: ChaosOptions,
  folder: string,
  layout: Layout,
  endings: (() => Promise<unknown>)[],
): Promise<number> {
  const { seed, minutes } = options
  // The checkout may go on while this runs.
  const commit = currentCommit()
  console.log(`chaos for ${minutes} min, seed ${seed}; logs in ${folder}`)
  const random = createSeededRandom(seed)
  const clock = watchMachineClock()
  endings.push(async () => clock.close())
  const cluster = await startCluster(folder, layout, endings)
  const record = recordGroup(etcdEndpoints(layout))
  endings.push(() => record.close())
  const store = createEtcdStore({ endpoints: etcdEndpoints(layout) })
  endings.push(() => store.close())
  const leaders = watchLeader(cluster.nodes.filter(({ place }) => place.kind === 'etcd'))
  endings.push(async () => leaders.close())
  const cpu = watchCpu(cluster.nodes.filter(({ place }) => WATCHED.includes(place.kind)))
  endings.push(async () => cpu.close())
  const observer = await createObserver({
    ...{ group: GROUP, nats: { servers: natsServers(layout) } },
    telemetry: { record: () => {} },
  })
  endings.push(async () => observer.close())
  await untilServing(cluster)
  const fromMs = machineMs()
  const events: string[] = []
  const say = (line: string) => {
    events.push(`${((machineMs() - fromMs) / 1000).toFixed(1).padStart(7)} s  ${line}`)
    writeFileSync(join(folder, 'events.log'), `${events.join('\n')}\n`)
  }
  const members = placesOf(layout, 'worker').map(({ name }) => name)
  const operators = createOperators(cluster.groupUrls, members, random.fork('operators'))
  const faults = createFaults(
    {
      ...{ cluster, operators, signal: interrupted.signal },
      passedRevision: () => record.passedRevision(),
    },
    random.fork('faults'),
    say,
  )
  endings.push(async () => faults.close())

  const settled: Settled[] = []
  const endMs = fromMs + minutes * 60_000
  while (machineMs() < endMs && !interrupted.signal.aborted) {
    operators.resume()
    await forMs(Math.min(CYCLE_MS, endMs - machineMs()), (signal) => faults.trouble(signal))
    await operators.pause()
    const one = await untilSettled(cluster, { store, observer }, interrupted.signal)
    settled.push(one)
    say(
      `healed: ${one.tookMs === null ? `not settled, ${one.last}` : `settled in ${one.tookMs} ms`}`,
    )
    if (one.tookMs === null) break
  }
  if (interrupted.signal.aborted) return EXIT_INTERRUPTED
  const toMs = machineMs()
  await cluster.producer.stop()
  await untilApplied(cluster)
  await untilRecorded(record, store)
  const accepted = await readAccepted(cluster.pool, clock.toMachineMs)
  const judgement = judgeRun({
    ...{ fromMs, toMs, accepts: accepted.lines, effects: accepted.effects },
    ...{ history: record.log(), settled, faults: faults.lines(), ends: faults.ends() },
    leaderChangesMs: leaders.changesMs(),
    ...(await gatherEvidence(cluster, {
      ...{ accepts: accepted.lines, history: record.log(), waits: cpu.lines() },
    })),
  })
  const report = makeReport({
    ...{ options, judgement, faults: faults.lines(), fromMs, operators: operators.counts() },
    ...{ commit, versions: versions(), wallClockDriftMs: clock.driftMs() },
  })
  const text = `${JSON.stringify(report, null, 2)}\n`
  writeFileSync(join(folder, 'report.json'), text)
  if (options.reportFile !== null) writeFileSync(options.reportFile, text)
  for (const line of reportLines(report)) console.log(line)
  return EXIT[judgement.verdict]
}

/** A timer of one's own: a timeout inside `AbortSignal.any` can be collected before it fires. */
async function forMs(ms: number, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const over = new AbortController()
  const end = () => over.abort()
  const timer = setTimeout(end, Math.max(0, ms))
  if (interrupted.signal.aborted) end()
  interrupted.signal.addEventListener('abort', end)
  try {
    await run(over.signal)
  } finally {
    clearTimeout(timer)
    interrupted.signal.removeEventListener('abort', end)
  }
}

/** Everything acknowledged has an effect; when it never has, the judgement says what is lost. */
async function untilApplied(cluster: Cluster): Promise<void> {
  let missing = readInputs(cluster.listFile)
  const endMs = machineMs() + APPLIED_TIMEOUT_MS
  while (machineMs() < endMs && !interrupted.signal.aborted) {
    missing = await withoutEffect(cluster.pool, missing).catch(() => missing)
    if (missing.length === 0) return
    await delay(POLL_MS)
  }
}

/** The harness has heard of everything that stands in etcd. */
async function untilRecorded(record: GroupRecord, store: Store): Promise<void> {
  const endMs = machineMs() + APPLIED_TIMEOUT_MS
  while (machineMs() < endMs) {
    if (await isCaughtUp(record.log().events, store, KEYS).catch(() => false)) return
    await delay(POLL_MS)
  }
}

function currentCommit(): string {
  return said('git', ['rev-parse', '--short', 'HEAD'])
}

function versions(): Versions {
  return {
    node: process.version,
    etcd: said(findServerProgram('etcd'), ['--version']),
    nats: said(findServerProgram('nats-server'), ['--version']),
    kernel: said('uname', ['-r']),
  }
}

function said(program: string, words: readonly string[]): string {
  try {
    return execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\n')[0]
      ?.trim() as string
  } catch {
    return 'unknown'
  }
}
