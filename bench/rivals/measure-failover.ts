/**
 * Failover, as the scenario of the same name: one of the members is killed, or stopped and woken again
 * when all its partitions have another holder. Told are the time from the moment at which the store let
 * the last of its claims run out to the last partition held again, and the *overlap*: how long after its
 * successor had begun the old holder would still have admitted work, by the two members' own logs. What a
 * stopped process could not do does not count, unless it still believed when it was woken.
 */
import type { Figures } from '../../src/bench/bench-types.ts'
import { machineMs } from '../../src/dev/machine-time.ts'
import { type Members, startMembers } from './members.ts'
import type { RivalKind, Stage, StageSettings } from './rival-kind.ts'

export type FailoverSettings = StageSettings & {
  readonly members: number
  readonly fault: 'SIGKILL' | 'SIGSTOP'
  /** Of the case; fewer are measured where that many would not be ready in time. */
  readonly partitionsAsked: number
  readonly deadlineMs: number
}

/** A woken member gets that many lease times to notice that it has lost. */
const NOTICE_LEASES = 3

export async function measureFailover(
  kind: RivalKind,
  settings: FailoverSettings,
): Promise<Figures> {
  const { prefix, partitions, members: count, leaseTtlMs, deadlineMs } = settings
  const stage = await kind.open(settings)
  let members: Members | null = null
  try {
    members = await startMembers(stage, { prefix, partitions, members: count, leaseTtlMs })
    const all = members
    all.say('begin')
    if (!(await all.until(() => all.held() === partitions, kind.settleMs + deadlineMs))) {
      throw new Error(`only ${all.held()} of ${partitions} held; ${all.failures().first}`)
    }
    all.say('standby')
    if (!(await all.until(() => all.standing() === count, deadlineMs))) {
      throw new Error(`only ${all.standing()} of ${count} stand by; ${all.failures().first}`)
    }
    return await strike(stage, all, settings, kind.settleMs)
  } finally {
    await members?.close()
    await stage.close()
  }
}

async function strike(
  stage: Stage,
  members: Members,
  settings: FailoverSettings,
  settleMs: number,
): Promise<Figures> {
  const { partitions, fault, members: count } = settings
  const victim = usualMember(members, count, partitions)
  const struck = members.heldBy(victim)
  const expired = await stage.watchExpiry(members.nameOf(victim), struck)
  const struckMs = machineMs()
  members.signal(victim, fault)
  const expiry = expired()
  const deadlineMs = settings.leaseTtlMs + settleMs + settings.deadlineMs
  await members.until(() => hasLeft(members, victim, fault), deadlineMs)
  const inTime = await members.until(() => members.held(victim) === partitions, deadlineMs)
  const servedMs = inTime ? lastSuccessionMs(members, victim, struckMs) : machineMs()
  const expiredMs = await Promise.race([expiry, nothingWithin(settings.deadlineMs)])
  const missing = partitions - members.held(victim)
  const { first } = members.failures()
  const notes = [
    partitions < settings.partitionsAsked ? `with ${partitions} partitions` : '',
    settleMs > 0 ? `its settle time of ${settleMs} ms included` : '',
    missing === 0 ? '' : `partial: ${missing} still without a holder, so at least; ${first}`,
  ]
  const note = notes.filter(Boolean).join('; ')
  const about = note === '' ? {} : { note }
  const metric = 'served again after the lease ran out'
  const figures: Figures = [
    ...(expiredMs === null
      ? []
      : [{ metric, unit: 'ms', values: [servedMs - expiredMs], ...about }]),
    { metric: 'served again after the fault', unit: 'ms', values: [servedMs - struckMs], ...about },
    { metric: 'partitions that moved', unit: '', values: [struck.length] },
  ]
  if (fault === 'SIGKILL') {
    return [...figures, { metric: 'overlap', unit: 'ms', values: [0], note: 'of a dead process' }]
  }
  return [...figures, ...(await wake(members, victim, struckMs, settings.leaseTtlMs))]
}

/** A killed member's claims end with it, which shows a moment later. */
function hasLeft(members: Members, victim: number, fault: FailoverSettings['fault']): boolean {
  return fault === 'SIGSTOP' || members.heldBy(victim).length === 0
}

/** Of the members that hold something, the one whose share is nearest to the mean. */
function usualMember(members: Members, count: number, partitions: number): number {
  const offs = Array.from({ length: count }, (_, place) => {
    const share = members.heldBy(place).length
    return share === 0 ? Number.POSITIVE_INFINITY : Math.abs(share - partitions / count)
  })
  return offs.indexOf(Math.min(...offs))
}

/** When the last partition that had no other holder than the struck member got one. */
function lastSuccessionMs({ claims }: Members, victim: number, struckMs: number): number {
  const held = claims.filter(({ place, fromMs }) => place !== victim && fromMs > struckMs)
  return Math.max(struckMs, ...held.map(({ fromMs }) => fromMs))
}

async function nothingWithin(timeoutMs: number): Promise<null> {
  await new Promise((resolve) => setTimeout(resolve, timeoutMs).unref())
  return null
}

/** Wakes the stopped member, and holds its claims against those of its successors. */
async function wake(
  members: Members,
  victim: number,
  struckMs: number,
  leaseTtlMs: number,
): Promise<Figures> {
  const old = members.claims.filter((one) => one.place === victim && one.toMs === null)
  const wokenMs = machineMs()
  members.signal(victim, 'SIGCONT')
  const ended = () => old.every(({ toMs }) => toMs !== null)
  const noticed = await members.until(ended, NOTICE_LEASES * leaseTtlMs)
  const nowMs = machineMs()
  const successions = new Map<number, number>()
  for (const { place, partition, fromMs } of members.claims) {
    if (place === victim || fromMs < struckMs || successions.has(partition)) continue
    successions.set(partition, fromMs)
  }
  let overlapMs = 0
  let believedMs = 0
  for (const { partition, toMs } of old) {
    const lastMs = toMs ?? nowMs
    const beganMs = successions.get(partition)
    if (beganMs !== undefined) overlapMs = Math.max(overlapMs, lastMs - beganMs)
    believedMs = Math.max(believedMs, lastMs - wokenMs)
  }
  const alone = old.filter(({ partition }) => !successions.has(partition)).length
  const notes = [
    noticed ? '' : 'it still believed when the measurement ended, so at least',
    alone === 0 ? '' : `${alone} of its ${old.length} partitions had no successor to overlap with`,
  ]
  const note = notes.filter(Boolean).join('; ')
  const about = note === '' ? {} : { note }
  return [
    { metric: 'overlap', unit: 'ms', values: [overlapMs], ...about },
    { metric: 'believed after it was woken', unit: 'ms', values: [believedMs], ...about },
  ]
}
