/**
 * L1 to L4 as durations against their bounds, from etcd's history, the accept log and the log of faults.
 *
 *   L1  a worker is killed → another session seals the partition (from then on it is processed there)
 *   L2  last work under the old token, or the revoke if that is later → the new owner seals, where the
 *       old one handed over after its drain
 *   L3  revoke → the owner gave up, or the move was forced or undone
 *   L4  everything healed → all is owned, progresses, and all maps are equal (settled.ts)
 *
 * A duration above its bound is void when the machine itself stalled, altogether for longer than the
 * margin, meanwhile. Where a candidate was dead or stuck too, a take-over has the time that the others leave it.
 * L2 is measured in commits, so its bound counts what a commit took then, and what the machine took away.
 */
import { CANDIDATE_STEP_MIN_MS, CANDIDATE_STEP_SHARE } from '../../src/core/election-turns.ts'
import { recordOwner } from '../../src/core/partition-record.ts'
import { comparePositions } from '../../src/core/token.ts'
import { type AcceptLine, tokenId } from '../../src/evidence/accept-log.ts'
import {
  grantId,
  grantsOf,
  type HistoryEvent,
  previousToken,
} from '../../src/evidence/history-log.ts'
import { groupNow, liveOwner } from '../e2e/support/group-history.ts'
import { type Disturbances, dueOf, SETTLE_BOUND_MS } from './disturbances.ts'
import { DRAIN_DEADLINE_MS, TTL_MS } from './layout.ts'
import {
  type Involved,
  isStalled,
  type MachineLine,
  type MachineLoad,
  machineLoad,
  type Stretch,
  slowestCommitMs,
  stalledMs,
} from './machine-load.ts'
import type { Settled } from './settled.ts'

export type LivenessName = 'L1' | 'L2' | 'L3' | 'L4'

export type Measure = {
  readonly promise: LivenessName
  /** Null: of the whole group. */
  readonly partition: number | null
  readonly fromMs: number
  /** Null: it had not come when the evidence ended. */
  readonly tookMs: number | null
  readonly boundMs: number
  /** Nothing else bore on it, so the bound is the design's own. */
  readonly isClean: boolean
  readonly verdict: 'held' | 'broken' | 'void'
}

export type LivenessEvidence = Disturbances & {
  readonly history: readonly HistoryEvent[]
  readonly accepts: readonly AcceptLine[]
  readonly settled: readonly Settled[]
  readonly machine: readonly MachineLine[]
  /** What began earlier belongs to the start. */
  readonly fromMs: number
}

/** etcd ends a session up to half a second after its TTL. */
const EXPIRY_MS = TTL_MS + 500
export const BOUNDS_MS: Readonly<Record<LivenessName, number>> = {
  L1: EXPIRY_MS + 1000,
  /** Beside the two commits: what tells of them, and the new owner's seal. */
  L2: 1000,
  /** The rebalancer looks at deadlines now and then, and forces the move with one commit. */
  L3: DRAIN_DEADLINE_MS + 3000,
  L4: SETTLE_BOUND_MS,
}

const COMMITS_OF_A_MOVE = 2

/** The next candidate's turn comes so much later, and up to half of it more by its jitter. */
const CANDIDATE_STEP_MS = Math.max(CANDIDATE_STEP_MIN_MS, TTL_MS * CANDIDATE_STEP_SHARE)

type Unjudged = Omit<Measure, 'verdict' | 'boundMs' | 'isClean'> & {
  readonly involved: Involved
  readonly dueMs: number
  readonly isClean: boolean
}

export function measureLiveness(evidence: LivenessEvidence): readonly Measure[] {
  const machine = machineLoad(evidence.machine)
  const endMs = evidence.history.at(-1)?.atMs ?? 0
  const all = [
    ...takeOvers(evidence),
    ...moves(evidence, machine),
    ...drains(evidence),
    ...evidence.settled.map(ofSettled),
  ]
  // What was still waited for, with time left, at the end of the evidence shows nothing.
  const ended = all.filter(({ tookMs, dueMs }) => tookMs !== null || dueMs < endMs)
  return ended.filter(({ fromMs }) => fromMs >= evidence.fromMs).map((one) => judge(one, machine))
}

function judge({ dueMs, involved, ...one }: Unjudged, machine: MachineLoad): Measure {
  const { fromMs, tookMs } = one
  const boundMs = dueMs - fromMs
  if (tookMs !== null && tookMs <= boundMs) return { ...one, boundMs, verdict: 'held' }
  const toMs = fromMs + (tookMs ?? boundMs)
  return {
    ...one,
    boundMs,
    verdict: isStalled(machine, { fromMs, toMs }, involved) ? 'void' : 'broken',
  }
}

/** Two commits as slow as the slowest one meanwhile, and the time for which nobody was let run. */
function machineShareMs(machine: MachineLoad, stretch: Stretch, involved: Involved): number {
  const commitsMs = COMMITS_OF_A_MOVE * slowestCommitMs(machine, stretch)
  return commitsMs + stalledMs(machine, stretch, involved)
}

/** Seals by partition, in order. */
function sealsOf(accepts: readonly AcceptLine[]) {
  const seals = new Map<number, Extract<AcceptLine, { type: 'sealed' }>[]>()
  for (const line of accepts) {
    if (line.type !== 'sealed') continue
    const { partition } = line.token
    const known = seals.get(partition)
    if (known === undefined) seals.set(partition, [line])
    else known.push(line)
  }
  return seals
}

function takeOvers(evidence: LivenessEvidence): readonly Unjudged[] {
  const { history, accepts, faults } = evidence
  const seals = sealsOf(accepts)
  const kills = faults.filter(({ kind }) => kind === 'worker-kill')
  return kills.flatMap((kill) => {
    const [member = ''] = kill.targets
    const group = groupNow(history.filter(({ atMs }) => atMs <= kill.fromMs))
    const session = group.sessions.get(member)
    return [...group.records].flatMap(([partition, record]): Unjudged[] => {
      if (liveOwner(group, partition) !== member) return []
      const seal = (seals.get(partition) ?? []).find(
        ({ token, atMs }) => atMs > kill.fromMs && token.session !== session,
      )
      const endMs = seal?.atMs ?? Number.POSITIVE_INFINITY
      const granted = grantedMembers(history, partition, kill.fromMs, endMs)
      const move = record.phase === 'revoking' && record.move.to !== null ? [record.move.to] : []
      const due = dueOf(evidence, {
        ...{ fromMs: kill.fromMs, cameMs: endMs, boundMs: BOUNDS_MS.L1, cause: kill },
        classes: ['etcd', 'postgres'],
        members: new Set([...granted, ...move]),
      })
      const mute = muteCandidates(evidence, member, kill.fromMs, endMs)
      const dueMs = due.dueMs + CANDIDATE_STEP_MS * (mute === 0 ? 0 : mute + 1 / 2)
      const isClean = due.isClean && mute === 0
      const tookMs = seal === undefined ? null : seal.atMs - kill.fromMs
      const { fromMs } = kill
      return [{ promise: 'L1', partition, fromMs, tookMs, dueMs, isClean, involved: null }]
    })
  })
}

/**
 * Number of members with a fault of their own after the killed one's session ended. Until its session
 * too has ended, such a member may come before others in the partition's election, and they leave each
 * of them a step of time.
 */
function muteCandidates(
  { history, faults }: LivenessEvidence,
  killed: string,
  fromMs: number,
  toMs: number,
): number {
  const vacantMs =
    history.find(
      (event) => event.type === 'session-gone' && event.atMs > fromMs && event.member === killed,
    )?.atMs ?? fromMs
  const members = faults
    .filter((fault) => fault.class === 'worker' && fault.fromMs <= toMs)
    .filter(({ toMs: healedMs }) => (healedMs ?? Number.POSITIVE_INFINITY) + EXPIRY_MS >= vacantMs)
    .flatMap(({ targets }) => targets)
    .filter((member) => member !== killed)
  return new Set(members).size
}

function grantedMembers(
  history: readonly HistoryEvent[],
  partition: number,
  fromMs: number,
  toMs: number,
): ReadonlySet<string> {
  const members = new Set<string>()
  for (const event of history) {
    if (event.type !== 'record' || event.partition !== partition) continue
    if (event.atMs < fromMs || event.atMs > toMs || event.record.phase !== 'owned') continue
    members.add(event.record.owner.member)
  }
  return members
}

/** When each token was first revoked. */
function revokesOf(history: readonly HistoryEvent[]): ReadonlyMap<string, HistoryEvent> {
  const revokes = new Map<string, HistoryEvent>()
  for (const event of history) {
    if (event.type !== 'record' || event.record.phase !== 'revoking') continue
    const { partition, record } = event
    const { incarnation, generation, owner } = record
    const id = tokenId({ partition, incarnation, generation, session: owner.session })
    if (!revokes.has(id)) revokes.set(id, event)
  }
  return revokes
}

function moves(evidence: LivenessEvidence, machine: MachineLoad): readonly Unjudged[] {
  const { history, accepts } = evidence
  const revokes = revokesOf(history)
  const sealedMs = new Map<string, number>()
  const workedMs = new Map<string, number>()
  for (const line of accepts) {
    const id = tokenId(line.token)
    if (line.type === 'sealed') sealedMs.set(id, line.atMs)
    else workedMs.set(id, Math.max(workedMs.get(id) ?? 0, line.endMs))
  }
  return grantsOf(history).flatMap((grant): Unjudged[] => {
    const token = previousToken(grant)
    if (grant.record.how !== 'hand-over' || token === null) return []
    const revoke = revokes.get(tokenId(token))
    const startMs = sealedMs.get(grantId(grant))
    // A new owner that is lost before it seals is L1's matter, or L4's.
    if (revoke === undefined || startMs === undefined) return []
    const fromMs = Math.max(revoke.atMs, workedMs.get(tokenId(token)) ?? 0)
    const members = new Set([grant.record.owner.member, grant.record.previous?.member ?? ''])
    const { dueMs, isClean } = dueOf(evidence, {
      ...{ fromMs, cameMs: startMs, cause: null },
      boundMs: BOUNDS_MS.L2 + machineShareMs(machine, { fromMs, toMs: startMs }, members),
      classes: ['etcd', 'postgres'],
      members,
    })
    const { partition } = grant
    const tookMs = Math.max(0, startMs - fromMs)
    return [{ promise: 'L2', partition, fromMs, tookMs, dueMs, isClean, involved: members }]
  })
}

function drains(evidence: LivenessEvidence): readonly Unjudged[] {
  const { history } = evidence
  const open = new Map<number, HistoryEvent & { readonly type: 'record' }>()
  const found: Unjudged[] = []
  const close = (revoke: HistoryEvent & { readonly type: 'record' }, endMs: number | null) => {
    const { partition, record, atMs: fromMs } = revoke
    const to = record.phase === 'revoking' ? record.move.to : null
    const { dueMs, isClean } = dueOf(evidence, {
      ...{ fromMs, cameMs: endMs ?? Number.POSITIVE_INFINITY, boundMs: BOUNDS_MS.L3 },
      cause: null,
      classes: ['etcd', 'serve'],
      members: new Set([recordOwner(record)?.member ?? '', to ?? '']),
    })
    const tookMs = endMs === null ? null : endMs - fromMs
    found.push({ promise: 'L3', partition, fromMs, tookMs, dueMs, isClean, involved: null })
  }
  for (const event of history) {
    if (event.type !== 'record') continue
    const { partition, record } = event
    const before = open.get(partition)
    if (before !== undefined) {
      const isSame = comparePositions(record, before.record) === 0 && record.phase === 'revoking'
      if (isSame) continue
      close(before, event.atMs)
      open.delete(partition)
    }
    if (record.phase === 'revoking') open.set(partition, event)
  }
  for (const revoke of open.values()) close(revoke, null)
  return found
}

function ofSettled({ fromMs, tookMs }: Settled): Unjudged {
  // One that never came has been waited for longer than its bound.
  return {
    ...{ promise: 'L4', partition: null, fromMs, tookMs, isClean: true, involved: null },
    dueMs: fromMs + BOUNDS_MS.L4,
  }
}
