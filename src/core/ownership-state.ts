/**
 * The words of the ownership machine: its states, events, actions and context. The diagram and the
 * invariants are in `ownership.ts`.
 */
import type { Commit, Stamp, StoredRecord } from './commit.ts'
import type { DrainPolicy } from './group-config.ts'
import type { MemberName, OperationId, PartitionId } from './ids.ts'
import type { GrantKind, MoveReason, Owner, PartitionRecord } from './partition-record.ts'
import { recordOwner } from './partition-record.ts'
import type { Position } from './token.ts'
import { BEFORE_ANY_GRANT, comparePositions } from './token.ts'

/** A grant that this member holds. */
export type Grant = Position & { readonly owner: Owner; readonly how: GrantKind }

/** Where a partition goes, and why. */
export type GiveUp = { readonly to: MemberName | null; readonly reason: MoveReason }

export type Held = { readonly grant: Grant; readonly stored: StoredRecord }
type Trust = 'sure' | 'settling'

/**
 * How the work under a grant ended before it was given up: after a drain; by force, so that it may still
 * run (fenced groups only); or it never began, because the grant was skipped or not yet acquired.
 */
export type Ending = 'drained' | 'forced' | 'unused'

export type Ownership =
  | { readonly status: 'absent' }
  | { readonly status: 'campaigning'; readonly commit: Commit }
  | (Held & { readonly status: 'acquiring'; readonly overdueAtMs: number })
  | (Held & { readonly status: 'serving'; readonly trust: Trust })
  | (Held & {
      readonly status: 'draining'
      readonly giveUp: GiveUp
      readonly sinceMs: number
      /** Null once the deadline was dealt with. */
      readonly overdueAtMs: number | null
    })
  | {
      readonly status: 'handing-over'
      readonly grant: Grant
      /** The record that the commit replaces. */
      readonly stored: StoredRecord
      readonly giveUp: GiveUp
      readonly ending: Ending
      readonly commit: Commit
      readonly drainMs: number
      readonly sentAtMs: number
    }
  | {
      readonly status: 'halting'
      /** What the record names; nothing runs under it here. */
      readonly grant: Grant
      readonly commit: Commit
      /** The highest position known of: what the raised incarnation must exceed. */
      readonly highest: Position
    }

/** What a member keeps per partition. */
export type Seat = {
  readonly highest: Position
  /** Id of the confirming read whose answer counts; answers to all others are too old. */
  readonly asked: OperationId | null
  readonly now: Ownership
}

export const NEW_SEAT: Seat = { highest: BEFORE_ANY_GRANT, asked: null, now: { status: 'absent' } }

export type OwnershipEvent =
  /** The map shows this record; a hint, newer than any seen before. */
  | { readonly type: 'seen'; readonly stored: StoredRecord | null }
  /** A writing transaction read this record, in answer to the `confirm` of this id. */
  | { readonly type: 'confirmed'; readonly id: string; readonly stored: StoredRecord | null }
  | { readonly type: 'campaign'; readonly stored: StoredRecord | null }
  | { readonly type: 'committed'; readonly operation: string }
  /** Refused by a compare; `stands` is the record that the transaction saw. */
  | { readonly type: 'refused'; readonly operation: string; readonly stands: StoredRecord | null }
  /** A requirement that the whole batch shares failed; the record was not looked at. */
  | { readonly type: 'refused-all'; readonly operation: string }
  /** Unknown or not executed: read and see. */
  | { readonly type: 'unsettled'; readonly operation: string }
  | { readonly type: 'heard-higher'; readonly position: Position }
  | { readonly type: 'acquired' }
  | { readonly type: 'acquire-failed'; readonly to: MemberName | null }
  | { readonly type: 'give-up'; readonly giveUp: GiveUp }
  | { readonly type: 'drained' }
  | { readonly type: 'session-ended' }
  /** A resource has seen a position not below mine although etcd calls me owner. */
  | { readonly type: 'fence-ahead'; readonly highest: Position }
  | { readonly type: 'wake' }

export type LostWhy = 'session-ended' | 'superseded' | 'forced' | 'halted' | 'acquire-overdue'

export type OwnershipAction =
  | { readonly type: 'commit'; readonly commit: Commit; readonly purpose: CommitPurpose }
  /**
   * Read the record in a writing transaction and come back with `confirmed` and this id. A read that
   * failed is sent again under the same id while `seat.asked` still is that id.
   */
  | { readonly type: 'confirm'; readonly id: OperationId }
  | { readonly type: 'begin'; readonly grant: Grant }
  | { readonly type: 'open-gate' }
  | { readonly type: 'suspend-gate'; readonly why: 'higher-generation' | 'changed-record' }
  | { readonly type: 'drain'; readonly giveUp: GiveUp }
  | { readonly type: 'lose'; readonly why: LostWhy }
  | {
      readonly type: 'release'
      readonly to: MemberName | null
      readonly drainMs: number
      readonly handOffMs: number
    }
  | { readonly type: 'drain-overdue'; readonly policy: DrainPolicy }
  | { readonly type: 'end-session' }
  | { readonly type: 'campaign-ended'; readonly outcome: 'won' | 'refused' | 'unknown' }
  /** The record is halted: an operator must raise the incarnation above this. */
  | { readonly type: 'fence-ahead'; readonly highest: Position }

export type CommitPurpose = 'campaign' | 'hand-over' | 'halt'

export type OwnershipContext = {
  readonly partition: PartitionId
  /** My name and live session; null while I have none. */
  readonly me: Owner | null
  readonly incarnation: number
  readonly fenced: boolean
  readonly drainDeadlineMs: number
  readonly drainPolicy: DrainPolicy
  readonly acquireDeadlineMs: number
  /** The member's live session, if it may receive partitions. */
  granteeOf(member: MemberName): Owner | null
  /** For what this step writes or asks; a fresh one for each step. */
  readonly stamp: Stamp
}

export type OwnershipStep = {
  readonly seat: Seat
  readonly actions: readonly OwnershipAction[]
  readonly wakeAtMs: number | null
}

export type As<Status extends Ownership['status']> = Ownership & { readonly status: Status }

export function isMine(record: PartitionRecord, me: Owner): boolean {
  const owner = recordOwner(record)
  return owner !== null && owner.session === me.session && owner.member === me.member
}

export function isGrant(stored: StoredRecord | null, grant: Grant): stored is StoredRecord {
  return (
    stored !== null &&
    comparePositions(stored.record, grant) === 0 &&
    recordOwner(stored.record)?.session === grant.owner.session
  )
}

export function isCommit(stored: StoredRecord | null, commit: Commit): boolean {
  return stored?.record.operation === commit.next.operation
}

export function to(seat: Seat, now: Ownership, actions: readonly OwnershipAction[]): OwnershipStep {
  // An answer about one grant says nothing of the next.
  const asked = isSameGround(seat.now, now) ? seat.asked : null
  return { seat: { highest: seat.highest, asked, now }, actions, wakeAtMs: wakeOf(now) }
}

/** Whether both are about the same grant, or hold none in the same way. */
function isSameGround(before: Ownership, after: Ownership): boolean {
  const was = groundOf(before)
  const is = groundOf(after)
  if (was === null || is === null) return was === is && before.status === after.status
  return comparePositions(was, is) === 0
}

function groundOf(now: Ownership): Grant | null {
  switch (now.status) {
    case 'absent':
    case 'campaigning':
    case 'halting':
      return null
    default:
      return now.grant
  }
}

/** Asks etcd; an answer still under way to an earlier question no longer counts. */
export function ask(
  seat: Seat,
  context: OwnershipContext,
  before: readonly OwnershipAction[] = [],
): OwnershipStep {
  const id = context.stamp.operation
  const { highest, now } = seat
  return {
    seat: { highest, asked: id, now },
    actions: [...before, { type: 'confirm', id }],
    wakeAtMs: wakeOf(now),
  }
}

/** The grant that a record names. */
export function grantOf(record: Exclude<PartitionRecord, { phase: 'vacant' }>): Grant {
  const { incarnation, generation, owner } = record
  // A halted record no longer says how its owner came by it; nobody is told of such a grant.
  return {
    incarnation,
    generation,
    owner,
    how: record.phase === 'halted' ? 'election' : record.how,
  }
}

const NO_ACTIONS: readonly OwnershipAction[] = []

export function stay(seat: Seat): OwnershipStep {
  return { seat, actions: NO_ACTIONS, wakeAtMs: wakeOf(seat.now) }
}

export function wakeOf(now: Ownership): number | null {
  return now.status === 'acquiring' || now.status === 'draining' ? now.overdueAtMs : null
}
