/**
 * Failover: one of ten members is killed or stopped, with all partitions at work. Counted from the
 * moment that etcd itself lets the lease run out (seen by a raw watch on the member's key) to the last
 * partition served again; the lease's own time is a setting, and no cost of Tenure's. The first of all is
 * told apart: no process here has taken over from another before, and the engine compiles as it goes.
 *
 * Overlap: how long after its successor had begun the old owner still admitted work on a partition. A
 * stopped process is woken when all is served elsewhere, and must find its gates closed.
 */
import { DEFAULT_KEY_PREFIX } from '../../core/keys.ts'
import { machineMs } from '../../dev/machine-time.ts'
import type { BenchProcess } from '../bench-processes.ts'
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { TENURE } from '../evaluate.ts'
import { firstCase } from '../first-case.ts'
import type { MemberNotes } from '../grant-notes.ts'
import { type Fleet, joinFleet } from '../member-fleet.ts'
import { memberOf } from '../member-names.ts'
import { createRawEtcd, type RawEtcd } from '../raw-etcd.ts'

const MEMBERS = 10
const PARTITIONS = 10_000
const LEASE_TTL_MS = 4000
const ITEM_MS = 1000
const SERVED_TIMEOUT_MS = 60_000

type Fault = 'SIGKILL' | 'SIGSTOP'

export const failover: Scenario = {
  name: 'failover',
  title: `one of ${MEMBERS} members dies under load, lease of ${LEASE_TTL_MS / 1000} s`,
  async *cases(context) {
    const partitions = Math.min(PARTITIONS, context.partitionsMax)
    yield firstCase(context, {
      ...{ scenario: 'failover', name: 'SIGKILL, the first', warmUpRounds: 0 },
      measure: (round) => measure(context, 'SIGKILL', partitions, round),
    })
    for (const fault of ['SIGKILL', 'SIGSTOP'] as const) {
      yield caseOf(context, fault, partitions)
    }
  },
}

function caseOf(context: BenchContext, fault: Fault, partitions: number): BenchCase {
  return {
    name: fault,
    rounds: context.quick ? 3 : 10,
    contenders: [{ name: TENURE, measure: (round) => measure(context, fault, partitions, round) }],
    comparisons: [
      {
        ...{ metric: 'served again after the lease ran out', statistic: 'max', against: null },
        target: { atMost: 500 },
      },
      { metric: 'overlap', statistic: 'max', against: null, target: { atMost: 0 } },
    ],
    rivalSettings: {
      caseName: fault,
      ...{ partitions, members: MEMBERS, leaseTtlMs: LEASE_TTL_MS, itemMs: ITEM_MS },
    },
  }
}

async function measure(
  context: BenchContext,
  fault: Fault,
  partitions: number,
  round: number | string,
): Promise<Figures> {
  const group = `${context.runId}-failover-${fault.toLowerCase()}-${round}`
  const prefix = `${DEFAULT_KEY_PREFIX}${group}/`
  const fleet = await joinFleet(context, {
    ...{ group, members: MEMBERS, itemMs: ITEM_MS },
    settings: { partitions, leaseTtlMs: LEASE_TTL_MS },
  })
  await fleet.allServing()
  const etcd = createRawEtcd(context.servers.etcd)
  try {
    return await strike(context, fleet, etcd, { fault, partitions, prefix })
  } finally {
    await fleet.leave().catch(() => {})
    await etcd.clear(prefix, context.servers.embedded)
    etcd.close()
  }
}

async function strike(
  { processes }: BenchContext,
  fleet: Fleet,
  etcd: RawEtcd,
  options: { readonly fault: Fault; readonly partitions: number; readonly prefix: string },
): Promise<Figures> {
  const { fault, partitions, prefix } = options
  // The newest process: one that took a killed one's place must not be cold among those measured.
  const place = MEMBERS - 1
  const victim = fleet.processes[place] as BenchProcess
  const others = fleet.processes.filter((one) => one !== victim)
  let expiredMs = 0
  const unwatch = await etcd.watch(`${prefix}members/${memberOf(place)}`, () => {
    if (expiredMs === 0) expiredMs = machineMs()
  })
  const before = victim.held().serving
  await fleet.notes(true)
  const struckMs = machineMs()
  victim.signal(fault)
  await processes.until(
    `all ${partitions} partitions served by the others`,
    () => fleet.serving(others) === partitions,
    SERVED_TIMEOUT_MS,
  )
  const notes = await Promise.all(others.map((one) => one.call('notes', { reset: true })))
  unwatch()
  const servedMs = Math.max(...notes.map((note) => note.lastServingMs))
  const figures: Figures = [
    {
      metric: 'served again after the lease ran out',
      ...{ unit: 'ms', values: [servedMs - expiredMs] },
    },
    { metric: 'served again after the fault', unit: 'ms', values: [servedMs - struckMs] },
    { metric: 'partitions that moved', unit: '', values: [before] },
  ]
  if (fault === 'SIGKILL') {
    await victim.gone
    return figures
  }
  victim.signal('SIGCONT')
  await processes.until(
    'the stopped member noticed',
    () => victim.held().serving === 0,
    SERVED_TIMEOUT_MS,
  )
  const old = await victim.call('notes', { reset: true })
  return [...figures, { metric: 'overlap', unit: 'ms', values: [overlapMs(old, notes)] }]
}

/** The longest time for which the old owner still admitted work after the new one had begun. */
function overlapMs(old: MemberNotes, others: readonly MemberNotes[]): number {
  const began = new Map<number, number>()
  for (const { partition, firstAdmittedMs } of others.flatMap(({ grants }) => grants)) {
    if (firstAdmittedMs > 0) began.set(partition, firstAdmittedMs)
  }
  let longest = 0
  for (const { partition, lastAdmittedMs } of old.grants) {
    const newMs = began.get(partition)
    if (newMs !== undefined) longest = Math.max(longest, lastAdmittedMs - newMs)
  }
  return longest
}
