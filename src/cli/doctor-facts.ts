/**
 * Gathers what `tenure doctor` judges: one look at this machine, etcd and NATS. Nothing here throws for
 * what is down; that is what the report is about.
 */
import { execFile } from 'node:child_process'
import { statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { DEFAULT_GROUP_CONFIG } from '../core/group-config.ts'
import type { Clock } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'
import { pause } from '../runtime/waiting.ts'
import type { CliContext } from './context.ts'
import type { DoctorFacts, ProgramFact } from './doctor.ts'
import { readNatsInfo } from './nats-info.ts'
import type { TenureConfig } from './tenure-config.ts'

const CALL_TIMEOUT_MS = 3000
const PROGRAM_TIMEOUT_MS = 5000
const ROUND_TRIPS = 20
const CLOCK_SAMPLE_MS = 500

export type DoctorMeans = {
  openStore(config: TenureConfig): Promise<Store>
  /** Path of a server program. Rejects when there is none. */
  findProgram(name: ProgramFact['name']): Promise<string>
}

export async function gatherFacts(
  config: TenureConfig,
  context: CliContext,
  means: DoctorMeans,
): Promise<DoctorFacts> {
  const [programs, store, broadcasts, clock, disk] = await Promise.all([
    Promise.all((['etcd', 'nats-server'] as const).map((name) => programFact(name, means))),
    storeFact(config, context, means),
    Promise.all(config.nats.servers.map(broadcastFact)),
    clockFact(context),
    diskFact(context.workingFolder),
  ])
  const { settings } = config
  return {
    nodeVersion: process.versions.node,
    programs,
    store,
    broadcasts,
    clock,
    disk,
    leaseTtlMs: settings.leaseTtlMs ?? DEFAULT_GROUP_CONFIG.leaseTtlMs,
    marginMs: settings.marginMs ?? DEFAULT_GROUP_CONFIG.marginMs,
  }
}

async function programFact(name: ProgramFact['name'], means: DoctorMeans): Promise<ProgramFact> {
  let path: string
  try {
    path = await means.findProgram(name)
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error)
    return { name, path: null, version: null, fault }
  }
  try {
    const options = { timeout: PROGRAM_TIMEOUT_MS }
    const { stdout } = await promisify(execFile)(path, ['--version'], options)
    return { name, path, version: /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? null, fault: '' }
  } catch {
    return { name, path, version: null, fault: '' }
  }
}

async function storeFact(
  config: TenureConfig,
  context: CliContext,
  means: DoctorMeans,
): Promise<DoctorFacts['store']> {
  const { endpoints } = config.etcd
  const store = await means.openStore(config)
  try {
    const options = { timeoutMs: CALL_TIMEOUT_MS }
    const status = await store.status(options)
    const roundTripsMs = status.ok ? await measure(store, context.clock) : []
    return { endpoints, status, roundTripsMs }
  } finally {
    await store.close()
  }
}

/** After the first call, which dials and is not counted. */
async function measure(store: Store, clock: Clock): Promise<readonly number[]> {
  const roundTripsMs: number[] = []
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const beganMs = clock.monotonicMs()
    const reply = await store.status({ timeoutMs: CALL_TIMEOUT_MS })
    if (reply.ok) roundTripsMs.push(clock.monotonicMs() - beganMs)
  }
  return roundTripsMs
}

async function broadcastFact(server: string): Promise<DoctorFacts['broadcasts'][number]> {
  return { server, answer: await readNatsInfo(server, CALL_TIMEOUT_MS) }
}

async function clockFact(context: CliContext): Promise<DoctorFacts['clock']> {
  const { clock, interrupted } = context
  const monotonicMs = clock.monotonicMs()
  const wallMs = clock.wallMs()
  await pause(clock, CLOCK_SAMPLE_MS, interrupted)
  const sampledMs = clock.monotonicMs() - monotonicMs
  const nowMs = clock.wallMs()
  return { wallMs: nowMs, driftMs: nowMs - wallMs - sampledMs, sampledMs }
}

async function diskFact(folder: string): Promise<DoctorFacts['disk']> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return { folder, freeBytes: bavail * bsize }
  } catch {
    return null
  }
}
