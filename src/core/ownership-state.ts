/**
 * The words of the ownership machine: its states, events, actions and context. The diagram and the
 * invariants are in `ownership.ts`.
 */
import type { Commit, Stamp, StoredRecord } from './commit.ts'
import type { DrainPolicy } from './group-config.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { GrantKind, MoveReason, Owner, PartitionRecord } from './partition-record.ts'
import { recordOwner } from './partition-record.ts'
import type { Position } from './token.ts'
import { comparePositions } from './token.ts'

/** A grant that this member holds. */
export type Grant = Position & { readonly owner: Owner; readonly how: GrantKind }

/** Where a partition goes, and why. */
export type GiveUp = { readonly to: MemberName | null; readonly reason: MoveReason }

export type Held = { readonly grant: Grant; readonly stored: StoredRecord }
type Trust = 'sure' | 'settling'

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
      readonly commit: Commit
      readonly drainMs: number
      readonly sentAtMs: number
    }

/** What a member keeps per partition. */
export type Seat = { readonly highest: Position; readonly now: Ownership }

export type OwnershipEvent =
  /** The map shows this record; a hint, newer than any seen before. */
  | { readonly type: 'seen'; readonly stored: StoredRecord | null }
  /** A writing transaction read this record. */
  | { readonly type: 'confirmed'; readonly stored: StoredRecord | null }
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
  /** Read the record in a writing transaction and come back with `confirmed`. */
  | { readonly type: 'confirm' }
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
  | { readonly type: 'campaign-ended'; readonly outcome: 'won' | 'refused' }
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
  return { seat: { ...seat, now }, actions, wakeAtMs: wakeOf(now) }
}

export function stay(seat: Seat): OwnershipStep {
  return { seat, actions: [], wakeAtMs: wakeOf(seat.now) }
}

export function wakeOf(now: Ownership): number | null {
  return now.status === 'acquiring' || now.status === 'draining' ? now.overdueAtMs : null
}
