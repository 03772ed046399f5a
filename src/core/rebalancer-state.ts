/**
 * The words of the rebalancer's machine: its state, events, actions and what it looks at. The rules are
 * in `rebalancer.ts` and its neighbours.
 */
import type { Commit, Stamp } from './commit.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId, SessionId } from './ids.ts'
import type { RebalanceRecord, RebalanceState } from './operator-records.ts'
import type { MoveReason, Owner, PartitionRecord } from './partition-record.ts'
import type { PreferenceOrderFactory } from './preference-order.ts'
import type { RecordWrite } from './rebalancer-writes.ts'

/** A move that is decided and not asked for yet: it waits for the churn budget. */
export type QueuedMove = {
  readonly partition: PartitionId
  readonly from: MemberName
  readonly to: MemberName
  /** Of the operator's rebalance, or of the balance, that wants it. */
  readonly id: string
  readonly reason: MoveReason
  readonly by: string
}

/** A move that was asked for. At most one per partition (S9). */
export type TrackedMove = {
  readonly id: string
  readonly from: Owner
  readonly to: MemberName | null
  readonly reason: MoveReason
  readonly rewrites: number
  readonly askedAtMs: number
  /** When this rebalancer first saw the record `revoking`; null: asked for, not seen yet. */
  readonly seenAtMs: number | null
  /** Its drain's deadline has passed. It no longer counts against the budget. */
  readonly overdue: boolean
  /** `to` may not be rewritten any more; the alarm was raised. */
  readonly starved: boolean
}

/** A write that is under way, or that must rest before it is tried again. One per thing written. */
export type Slot = {
  /** Null while the answer is awaited; else the monotonic time until which it rests. */
  readonly untilMs: number | null
}

/** A partition's commit: likewise, and over once the text that it replaces is gone. */
export type CommitSlot = Slot & { readonly expected: string | null }

export type Balance = {
  /** What decided the last plan (members, weights, cordons, disabled); a change makes another due. */
  readonly signature: string
  /** When to plan; null: nothing is due. Waits while the group is frozen. */
  readonly dueAtMs: number | null
  /** The plan that is being carried out: an operator's rebalance or a name of its own; null: none. */
  readonly id: string | null
  /** Whose moves these are. */
  readonly by: string
  /** Some move of the plan was skipped or ended elsewhere: look again when it is through. */
  readonly incomplete: boolean
  /** Plans left until the next change of membership, so that no plan is replayed for ever. */
  readonly passesLeft: number
  /** How long to wait for vacant partitions to be elected before planning again. */
  readonly vacancyDelayMs: number
}

/** What is known of an operator's rebalance beyond its record. */
export type RequestMemory = {
  /** As it was reported last. */
  readonly state: RebalanceState
  /** Last time its progress was written. */
  readonly wroteAtMs: number
  /** When to look again whether anything is left to move. */
  readonly lookAtMs: number
}

export type Eviction = { readonly session: SessionId; readonly sinceMs: number }

export type RebalancerState = {
  /** The session under which this rebalancer was elected. */
  readonly session: SessionId
  readonly moves: ReadonlyMap<PartitionId, TrackedMove>
  readonly queue: readonly QueuedMove[]
  readonly commits: ReadonlyMap<PartitionId, CommitSlot>
  readonly slots: ReadonlyMap<string, Slot>
  readonly balance: Balance
  /** When to plan drains; null: nothing is due. */
  readonly drainsDueAtMs: number | null
  readonly requests: ReadonlyMap<string, RequestMemory>
  readonly evictions: ReadonlyMap<MemberName, Eviction>
  /** Releases of the last minute, oldest first. */
  readonly released: readonly Release[]
}

export type Release = { readonly atMs: number; readonly moves: number }

export type MoveOutcome = 'moved' | 'cancelled' | 'forced' | 'refused'

export type RebalancerEvent =
  /** The map changed; the view includes it. */
  | { readonly type: 'changed'; readonly partitions: readonly PartitionId[] }
  /** Answers to commits. What they showed is in the view already. */
  | { readonly type: 'answered'; readonly partitions: readonly PartitionId[] }
  /** Answer to a record write or a lease that was to be closed; `inView`: the view shows it already. */
  | { readonly type: 'wrote'; readonly slot: string; readonly inView: boolean }
  | { readonly type: 'wake' }
  /** What came within one turn of the event loop, in that order. */
  | { readonly type: 'several'; readonly events: readonly RebalancerEvent[] }

export type RebalancerAction =
  | { readonly type: 'commit'; readonly commit: Commit }
  | { readonly type: 'write'; readonly slot: string; readonly write: RecordWrite }
  | {
      readonly type: 'close-lease'
      readonly slot: string
      readonly member: MemberName
      readonly session: SessionId
    }
  | { readonly type: 'plan-made'; readonly reason: MoveReason; readonly moves: number }
  | { readonly type: 'move-requested'; readonly move: QueuedMove }
  | {
      readonly type: 'move-ended'
      readonly partition: PartitionId
      readonly outcome: MoveOutcome
      readonly reason: MoveReason
      readonly tookMs: number
    }
  /** An operator's rebalance is in another state than before. */
  | { readonly type: 'rebalance-changed'; readonly record: RebalanceRecord }
  | { readonly type: 'eviction-closed'; readonly member: MemberName }
  | {
      readonly type: 'alarm'
      readonly code: 'drain-overdue' | 'moves-starved'
      readonly detail: string
    }

/** What the machine looks at. The group's state is read, never changed. */
export type RebalancerView = {
  readonly group: GroupState
  readonly orderOf: PreferenceOrderFactory
  /** TTL that the store granted to this rebalancer's own session: what it makes of T. */
  readonly ttlMs: number
  /** For display, and to end a freeze at its time. */
  readonly wallMs: number
  /** Who stands as `by` in moves that no operator asked for. */
  readonly by: string
  /** Of this step; each partition's commit gets an operation id made of it. */
  readonly stamp: Stamp
}

export type RebalancerStep = {
  readonly state: RebalancerState
  readonly actions: readonly RebalancerAction[]
  /** When to send `wake`; null: only a change can matter. */
  readonly wakeAtMs: number | null
}

export type Revoking = PartitionRecord & { readonly phase: 'revoking' }
