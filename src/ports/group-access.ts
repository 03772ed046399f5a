/**
 * How HTTP and the CLI's server see groups: reads from memory with their age, and operators' changes.
 * Implemented by `src/runtime/group-service.ts`; neither side of it knows an etcd key.
 */
import type { GroupConfig, GroupSettings } from '../core/group-config.ts'
import type { MemberName, PartitionId, SessionId } from '../core/ids.ts'
import type { MemberRecord } from '../core/member-record.ts'
import type { OperatorMark, RebalanceKind, RebalanceRecord } from '../core/operator-records.ts'
import type { GrantKind, PendingMove, PreviousOwner } from '../core/partition-record.ts'

/** A map's version: never goes back (S8). Text form `<incarnation>.<revision>`, the ETag. */
export type MapVersion = {
  readonly incarnation: number
  readonly revision: number
}

/** How fresh an answer from memory is. */
export type Freshness = {
  readonly version: MapVersion
  /** Milliseconds since the map was last known to be current. */
  readonly ageMs: number
  /** True when the store has not confirmed the map within its session's TTL. */
  readonly stale: boolean
}

export type PartitionView = {
  readonly partition: PartitionId
  readonly phase: 'vacant' | 'owned' | 'revoking' | 'halted'
  readonly incarnation: number
  readonly generation: number
  readonly owner: {
    readonly member: MemberName
    readonly session: SessionId
    readonly address: string
    readonly live: boolean
  } | null
  /** What the owner said last over the broadcast; a hint. */
  readonly serving: boolean
  readonly how: GrantKind | null
  readonly move: PendingMove | null
  readonly previous: PreviousOwner | null
  readonly disabled: boolean
  /** Why nobody owns it, or why it does not move; null when there is nothing to explain. */
  readonly why: string | null
  readonly changedAtMs: number
}

export type MemberView = MemberRecord & {
  readonly owned: number
  readonly cordon: OperatorMark | null
  readonly evicting: boolean
}

export type GroupSummary = {
  readonly group: string
  readonly partitions: number
  readonly owned: number
  readonly vacant: number
  readonly moving: number
  readonly halted: number
  readonly notServing: number
  readonly members: number
  readonly rebalancer: SessionId | null
  readonly incarnation: number
  readonly frozen: OperatorMark | null
  readonly disabled: OperatorMark | null
  readonly alarms: readonly string[]
}

export type PlannedMove = {
  readonly partition: PartitionId
  readonly from: MemberName | null
  readonly to: MemberName | null
}

/** One change of the map, for the event stream. */
export type MapEvent = {
  readonly version: MapVersion
  readonly partitions: readonly PartitionView[]
}

export interface GroupView {
  freshness(): Freshness
  summary(): GroupSummary
  config(): GroupConfig
  partition(partition: PartitionId): PartitionView
  /** Rises with every change after which `partition` may answer otherwise in anything but `serving`. */
  edition(): number
  /** What `partition` says of it, alone. */
  isServing(partition: PartitionId): boolean
  partitions(): Iterable<PartitionView>
  members(): readonly MemberView[]
  rebalances(): readonly RebalanceRecord[]
  partitionOf(key: string): PartitionId
  /** What a balance now would move. */
  plan(): readonly PlannedMove[]
  /** Calls back after each change; events kept for `since` are bounded, null: too old, start anew. */
  onChange(listener: (event: MapEvent) => void): () => void
  eventsSince(version: MapVersion): readonly MapEvent[] | null
}

export type Refusal = {
  readonly ok: false
  readonly code:
    | 'unknown-partition'
    | 'unknown-member'
    | 'unknown-rebalance'
    | 'conflict'
    | 'precondition-failed'
    | 'invalid-config'
    | 'invalid-argument'
    | 'store-unreachable'
  readonly detail: string
  /** Set with `store-unreachable`. */
  readonly retryAfterMs?: number
}
export type Change<T> = { readonly ok: true; readonly value: T } | Refusal

export type By = { readonly by: string; readonly why: string }

/** Operators' changes: each durable in etcd before it is answered; the rebalancer acts on them. */
export interface GroupAdmin {
  /** `id` is the idempotency key when the caller gave one: the same id twice answers the first. */
  requestRebalance(
    kind: RebalanceKind,
    by: By,
    id?: string,
  ): Promise<Change<{ readonly record: RebalanceRecord; readonly created: boolean }>>
  cancelRebalance(id: string): Promise<Change<RebalanceRecord>>
  setFreeze(by: By & { readonly untilMs: number | null }): Promise<Change<OperatorMark>>
  clearFreeze(): Promise<Change<null>>
  setCordon(member: MemberName, by: By): Promise<Change<OperatorMark>>
  clearCordon(member: MemberName): Promise<Change<null>>
  /** `partition` null: the whole group. */
  setDisabled(partition: PartitionId | null, by: By): Promise<Change<OperatorMark>>
  clearDisabled(partition: PartitionId | null): Promise<Change<null>>
  evict(member: MemberName, by: By): Promise<Change<OperatorMark>>
  /** Compare-and-set to max(now in seconds, highest reported + 1); answers the new number. */
  raiseIncarnation(by: By): Promise<Change<number>>
  /** Changes settings; partitions, leaseTtlMs and fenced are refused. */
  changeConfig(settings: GroupSettings): Promise<Change<GroupConfig>>
}

export interface Groups {
  names(): readonly string[]
  /** Null: no such group. */
  find(group: string): { readonly view: GroupView; readonly admin: GroupAdmin } | null
}
