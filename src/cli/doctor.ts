/**
 * `tenure doctor`: judges facts that were gathered elsewhere. Pure: the same facts, the same report.
 * A `fail` keeps Tenure from working; a `warn` is a known fault or a limit that comes nearer. Each says
 * what to do. Not promised: that a healthy report means a healthy cluster; it is one look from here.
 */
import type { StoreReply, StoreStatus } from '../ports/store.ts'
import { describeDuration } from './setting-kinds.ts'

export type ProgramFact = {
  readonly name: 'etcd' | 'nats-server'
  /** Null: not found on this machine. */
  readonly path: string | null
  readonly version: string | null
  /** Why there is no path; empty when there is one. */
  readonly fault: string
}

export type DoctorFacts = {
  readonly nodeVersion: string
  /** Only `tenure dev` needs them here. */
  readonly programs: readonly ProgramFact[]
  readonly store: {
    readonly endpoints: readonly string[]
    readonly status: StoreReply<StoreStatus>
    /** Round trips of small requests, as measured from here. */
    readonly roundTripsMs: readonly number[]
  }
  readonly broadcasts: readonly {
    readonly server: string
    readonly answer:
      | { readonly ok: true; readonly version: string; readonly jetStream: boolean }
      | { readonly ok: false; readonly detail: string }
  }[]
  readonly clock: {
    readonly wallMs: number
    /** How far wall and monotonic clock ran apart while `sampledMs` passed. */
    readonly driftMs: number
    readonly sampledMs: number
  }
  readonly disk: { readonly folder: string; readonly freeBytes: number } | null
  /** The group settings that this process would ask for. */
  readonly leaseTtlMs: number
  readonly marginMs: number
}

export type Check = {
  readonly name: string
  readonly verdict: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** What to do; empty when ok. */
  readonly remedy: string
}

export type DoctorReport = {
  /** The worst verdict of all checks. */
  readonly verdict: Check['verdict']
  readonly checks: readonly Check[]
}

/** Tenure's own floor; `package.json` states the same. */
const NODE_MIN = '20.19.0'
const ETCD_SOUND = '3.4.31'
const ETCD_CORRUPTING = { from: '3.5.0', below: '3.5.3' }
const NATS_SOUND = '2.9.21'
/** etcd's default quota; what it was given it does not tell. */
const QUOTA_BYTES = 2 * 1024 ** 3
const DISK_MIN_BYTES = 1024 ** 3
/** No group can have been created before; an incarnation is its creation time. */
const WALL_MIN_MS = Date.UTC(2025, 0, 1)
const DRIFT_MAX_MS = 50

export function examine(facts: DoctorFacts): DoctorReport {
  const checks = [
    checkNode(facts.nodeVersion),
    ...facts.programs.map(checkProgram),
    ...checkStore(facts),
    ...facts.broadcasts.map(checkBroadcast),
    checkClock(facts.clock),
    ...(facts.disk === null ? [] : [checkDisk(facts.disk)]),
  ]
  const has = (verdict: Check['verdict']) => checks.some((check) => check.verdict === verdict)
  return { verdict: has('fail') ? 'fail' : has('warn') ? 'warn' : 'ok', checks }
}

function checkNode(version: string): Check {
  if (!isBelow(version, NODE_MIN)) return ok('node', version)
  return fail('node', `${version} is older than ${NODE_MIN}`, `install Node ${NODE_MIN} or newer`)
}

function checkProgram({ name, path, version, fault }: ProgramFact): Check {
  if (path !== null) return ok(`${name} program`, `${path}, ${version ?? 'version unknown'}`)
  const variable = name === 'etcd' ? 'TENURE_ETCD_BIN' : 'TENURE_NATS_BIN'
  return warn(
    `${name} program`,
    `${fault}; only \`tenure dev\` needs it`,
    `run deploy/setup.sh, or name its path in ${variable}`,
  )
}

function checkStore({ store, leaseTtlMs, marginMs }: DoctorFacts): readonly Check[] {
  const { endpoints, status, roundTripsMs } = store
  const where = endpoints.join(', ')
  if (!status.ok) {
    const remedy = 'start etcd, or name it with --etcd-endpoints or TENURE_ETCD_ENDPOINTS'
    return [fail('etcd', `${where}: ${status.detail.trim()} (${status.reason})`, remedy)]
  }
  const { version, databaseBytes, leaderKnown, alarms } = status.value
  return [
    ok('etcd', `${where} answers`),
    checkStoreVersion(version),
    leaderKnown
      ? ok('etcd leader', 'known')
      : fail('etcd leader', 'none: there is no quorum', 'bring back most of the etcd members'),
    alarms.length === 0
      ? ok('etcd alarms', 'none')
      : fail('etcd alarms', alarms.join(', '), alarmRemedy(alarms)),
    checkDatabase(databaseBytes),
    ...checkLatency(roundTripsMs, leaseTtlMs, marginMs),
  ]
}

function checkStoreVersion(version: string): Check {
  if (isBelow(version, ETCD_SOUND)) {
    return warn(
      'etcd version',
      `${version}: a leader that was stuck can revoke live leases (etcd #15247), keepalives of dead leases may be acknowledged, reads may be stale after a pause (#20418); Tenure stays safe, sessions may end for no reason`,
      `update etcd to ${ETCD_SOUND} or newer`,
    )
  }
  if (!isBelow(version, ETCD_CORRUPTING.from) && isBelow(version, ETCD_CORRUPTING.below)) {
    return fail(
      'etcd version',
      `${version}: a crash can leave members with different data`,
      `update etcd to ${ETCD_CORRUPTING.below} or newer before anything else`,
    )
  }
  return ok('etcd version', version)
}

function alarmRemedy(alarms: readonly string[]): string {
  return alarms.includes('NOSPACE')
    ? 'compact and defragment etcd, or raise its quota; then `etcdctl alarm disarm`'
    : 'replace the member that raised it, from a backup that is sound'
}

function checkDatabase(bytes: number): Check {
  const share = bytes / QUOTA_BYTES
  const detail = `${describeBytes(bytes)}, ${Math.round(share * 100)} % of the default quota`
  if (share < 0.7) return ok('etcd database', detail)
  return warn('etcd database', detail, 'compact and defragment etcd, or raise its quota')
}

/** A keepalive and its proof are two round trips; both must fit into the margin and T/3 several times. */
function checkLatency(
  roundTripsMs: readonly number[],
  leaseTtlMs: number,
  marginMs: number,
): readonly Check[] {
  if (roundTripsMs.length === 0) return []
  const worstMs = Math.max(...roundTripsMs)
  const detail = `slowest of ${roundTripsMs.length} round trips ${worstMs.toFixed(1)} ms`
  const neededTtlMs = Math.max(2000, Math.ceil((worstMs * 2 * 3 * 4) / 1000) * 1000)
  if (neededTtlMs <= leaseTtlMs && worstMs <= marginMs / 2) return [ok('etcd latency', detail)]
  const ttl = describeDuration(Math.max(neededTtlMs, leaseTtlMs))
  const margin = describeDuration(Math.max(marginMs, Math.ceil((worstMs * 2) / 100) * 100))
  return [
    warn('etcd latency', detail, `in a new group use --lease-ttl ${ttl} and --margin ${margin}`),
  ]
}

function checkBroadcast({ server, answer }: DoctorFacts['broadcasts'][number]): Check {
  const name = `nats ${server}`
  if (!answer.ok) {
    return fail(
      name,
      `${answer.detail}; ownership does not need it, observers do`,
      'start nats-server, or name it with --nats-servers or TENURE_NATS_SERVERS',
    )
  }
  if (isBelow(answer.version, NATS_SOUND)) {
    return warn(
      name,
      `${answer.version}: with three replicas JetStream accepts conflicting expected sequences (nats-server #4320)`,
      `update nats-server to ${NATS_SOUND} or newer where JetStream is replicated`,
    )
  }
  return ok(name, `${answer.version}, JetStream ${answer.jetStream ? 'on' : 'off'}`)
}

function checkClock({ wallMs, driftMs, sampledMs }: DoctorFacts['clock']): Check {
  if (wallMs < WALL_MIN_MS) {
    return fail(
      'clock',
      `the wall clock says ${new Date(wallMs).toISOString()}`,
      'set the clock: a new group takes its incarnation from it',
    )
  }
  const detail = `wall and monotonic clock apart by ${Math.abs(driftMs).toFixed(0)} ms in ${sampledMs.toFixed(0)} ms`
  if (Math.abs(driftMs) <= DRIFT_MAX_MS) return ok('clock', detail)
  return warn('clock', detail, 'something sets the clock in steps: let one service slew it')
}

function checkDisk({ folder, freeBytes }: { folder: string; freeBytes: number }): Check {
  const detail = `${describeBytes(freeBytes)} free in ${folder}`
  if (freeBytes >= DISK_MIN_BYTES) return ok('disk', detail)
  return warn('disk', detail, 'make room: a full disk stops etcd')
}

/** True when the version's numbers come before the other's; false when it is none. */
function isBelow(version: string, other: string): boolean {
  const left = numbersOf(version)
  const right = numbersOf(other)
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return left.length > 0 && difference < 0
  }
  return false
}

function numbersOf(version: string): readonly number[] {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(version)
  return match === null ? [] : match.slice(1).map((part) => Number(part ?? 0))
}

function describeBytes(bytes: number): string {
  const gibibytes = bytes / 1024 ** 3
  return gibibytes >= 1 ? `${gibibytes.toFixed(1)} GiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`
}

function ok(name: string, detail: string): Check {
  return { name, verdict: 'ok', detail, remedy: '' }
}

function warn(name: string, detail: string, remedy: string): Check {
  return { name, verdict: 'warn', detail, remedy }
}

function fail(name: string, detail: string, remedy: string): Check {
  return { name, verdict: 'fail', detail, remedy }
}
