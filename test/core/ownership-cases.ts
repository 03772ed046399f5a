/** The cast of the ownership machine's tests: me, two others, records of partition 7 and steps over them. */
import type { Commit, Requirement, StoredRecord } from '../../src/core/commit.ts'
import type { OperationId, SessionId } from '../../src/core/ids.ts'
import { memberName, operationId, sessionId } from '../../src/core/ids.ts'
import { checkOwnershipStep } from '../../src/core/invariants.ts'
import { stepOwnership } from '../../src/core/ownership.ts'
import type {
  Grant,
  Ownership,
  OwnershipAction,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from '../../src/core/ownership-state.ts'
import { NEW_SEAT } from '../../src/core/ownership-state.ts'
import type { Owner, PartitionRecord, PendingMove } from '../../src/core/partition-record.ts'
import { encodePartitionRecord } from '../../src/core/partition-record.ts'
import type { Position } from '../../src/core/token.ts'

export const ME: Owner = owner('a', '00000000000000a1')
/** My next life. */
export const REBORN: Owner = owner('a', '00000000000000a2')
export const B: Owner = owner('b', '00000000000000b1')
export const C: Owner = owner('c', '00000000000000c1')

export const PARTITION = 7
export const NOW_MS = 50_000
/** The operation id of every write of a step. */
export const OPERATION = operationId('op-step')

export const CONTEXT: OwnershipContext = {
  partition: PARTITION,
  me: ME,
  incarnation: 1,
  fenced: false,
  drainDeadlineMs: 1000,
  drainPolicy: 'wait',
  acquireDeadlineMs: 2000,
  granteeOf: (member) => [ME, B, C].find((one) => one.member === member) ?? null,
  stamp: { operation: OPERATION, atMs: 9 },
}
/** The map shows nobody else. */
export const ALONE: OwnershipContext = {
  ...CONTEXT,
  granteeOf: (member) => (member === ME.member ? ME : null),
}

function owner(member: string, session: string): Owner {
  return { member: memberName(member), session: sessionId(session) as SessionId }
}

type Shape = {
  readonly incarnation?: number
  readonly generation?: number
  readonly owner?: Owner
  readonly operation?: string
}

export function vacant(shape: Shape = {}): StoredRecord {
  return stored({ ...common(shape), phase: 'vacant' })
}
export function owned(shape: Shape = {}): StoredRecord {
  return stored({ ...common(shape), phase: 'owned', owner: shape.owner ?? ME, how: 'election' })
}
export function revoking(to: Owner | null, shape: Shape = {}, rewrites = 0): StoredRecord {
  const move: PendingMove = {
    id: 'move-1',
    to: to?.member ?? null,
    reason: 'balance',
    by: 'rebalancer',
    rewrites,
    atMs: 5,
  }
  return stored({
    ...common({ operation: `revoke-${rewrites}`, ...shape }),
    phase: 'revoking',
    owner: shape.owner ?? ME,
    how: 'election',
    move,
  })
}
export function halted(shape: Shape = {}): StoredRecord {
  return stored({
    ...common({ operation: 'halt', ...shape }),
    phase: 'halted',
    owner: shape.owner ?? ME,
    reason: 'fence-ahead',
  })
}

function common({ incarnation = 1, generation = 3, operation = 'op-before' }: Shape) {
  return {
    incarnation,
    generation,
    operation: operation as OperationId,
    previous: null,
    atMs: 1,
    unknown: null,
  }
}

function stored(record: PartitionRecord): StoredRecord {
  return { record, raw: encodePartitionRecord(record) }
}

/** What stands once a commit is done. */
export function after(commit: Commit): StoredRecord {
  return { record: commit.next, raw: commit.value }
}

export function at(generation: number, incarnation = 1): Position {
  return { incarnation, generation }
}

export const GRANT: Grant = { ...at(3), owner: ME, how: 'election' }

export function seat(now: Ownership, highest: Position = at(3)): Seat {
  return { highest, asked: null, now }
}
export function absent(highest: Position = at(3)): Seat {
  return seat({ status: 'absent' }, highest)
}
export const NEVER = NEW_SEAT

export const ACQUIRING = {
  status: 'acquiring',
  grant: GRANT,
  stored: owned(),
  overdueAtMs: 52_000,
} as const
export const SERVING = { status: 'serving', grant: GRANT, stored: owned(), trust: 'sure' } as const
export const SETTLING = { ...SERVING, trust: 'settling' } as const
export const DRAINING = {
  status: 'draining',
  grant: GRANT,
  stored: revoking(B),
  giveUp: { to: B.member, reason: 'balance' },
  sinceMs: 49_000,
  overdueAtMs: 50_000,
} as const

/** One step, which must break no invariant either. */
export function step(
  from: Seat,
  event: OwnershipEvent,
  context: OwnershipContext = CONTEXT,
  nowMs: number = NOW_MS,
): OwnershipStep {
  const taken = stepOwnership(from, event, context, nowMs)
  const broken = checkOwnershipStep(from, event, context, taken)
  if (broken.length > 0) throw new Error(JSON.stringify(broken))
  return taken
}

export function unchanged(from: Seat, wakeAtMs: number | null = null): OwnershipStep {
  return { seat: from, actions: [], wakeAtMs }
}

export function asks(from: Seat, wakeAtMs: number | null = null): OwnershipStep {
  return {
    seat: { ...from, asked: OPERATION },
    actions: [{ type: 'confirm', id: OPERATION }],
    wakeAtMs,
  }
}

export function becomes(
  now: Ownership,
  actions: readonly OwnershipAction[],
  highest: Position = at(3),
): OwnershipStep {
  const wakes = now.status === 'acquiring' || now.status === 'draining'
  return { seat: seat(now, highest), actions, wakeAtMs: wakes ? now.overdueAtMs : null }
}

/** The only commit that a step sends. */
export function commitOf(taken: OwnershipStep): Commit {
  const commits = taken.actions.flatMap((one) => (one.type === 'commit' ? [one.commit] : []))
  if (commits.length !== 1) throw new Error(`${commits.length} commits in one step`)
  return commits[0] as Commit
}

export function grantRequirements(to: Owner, incarnation = 1): readonly Requirement[] {
  return [
    { type: 'session-alive', ...to },
    { type: 'incarnation', incarnation },
    { type: 'not-cordoned', member: to.member },
    { type: 'group-enabled' },
    { type: 'partition-enabled' },
  ]
}
