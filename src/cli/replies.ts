/**
 * Replies of the HTTP interface, as the commands read them: the ports' shapes plus the age of the map.
 */

import type { RebalanceRecord } from '../core/operator-records.ts'
import type { GroupSummary, MemberView, PartitionView, PlannedMove } from '../ports/group-access.ts'

export type Age = {
  /** `<incarnation>.<revision>` of the map that answered. */
  readonly version: string
  readonly asOfMs: number
  readonly ageMs: number
  readonly stale: boolean
}

export type GroupReply = GroupSummary & Age
export type GroupsReply = { readonly groups: readonly GroupReply[] }
export type PartitionReply = { readonly partition: PartitionView } & Age
export type PartitionsReply = {
  readonly partitions: readonly PartitionView[]
  readonly nextCursor: string | null
} & Age
export type MembersReply = { readonly members: readonly MemberView[] } & Age
export type OwnerReply = {
  readonly group: string
  readonly partition: number
  readonly owner: {
    readonly member: string
    readonly address: string
    readonly live: boolean
  } | null
  readonly token: {
    readonly incarnation: number
    readonly generation: number
    readonly session: string
  } | null
  readonly phase: PartitionView['phase']
  readonly serving: boolean
  readonly why: string | null
} & Age
export type RebalancesReply = { readonly rebalances: readonly RebalanceRecord[] } & Age
export type RebalanceReply = { readonly rebalance: RebalanceRecord } & Age
export type PlanReply = {
  readonly dryRun: true
  readonly count: number
  readonly truncated: boolean
  readonly note: string
  readonly moves: readonly PlannedMove[]
} & Age
