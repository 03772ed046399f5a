/**
 * The telemetry port: every transition is one event, recorded in one place by the driver that made it.
 * Logs and metrics are both made of these events and of nothing else. Durations in milliseconds.
 */
import type { GroupName, MemberName, PartitionId, SessionId } from '../core/ids.ts'
import type { GrantKind, MoveReason } from '../core/partition-record.ts'
import type { Position } from '../core/token.ts'

export type SessionEndCause =
  | 'deadline'
  | 'session-gone'
  | 'evicted'
  | 'closed'
  | 'drain-overdue'
  | 'invariant-broken'

export type LossCause =
  | SessionEndCause
  | 'superseded'
  | 'forced'
  | 'halted'
  | 'acquire-overdue'
  | 'stopped'

export type WorkRefusal = 'not-owner' | 'draining' | 'lost' | 'acquiring' | 'overloaded' | 'stopped'

type InGroup = { readonly group: GroupName }
type OfMember = InGroup & { readonly member: MemberName }
type OfPartition = OfMember & { readonly partition: PartitionId }
type OfGrant = OfPartition & Position

export type TelemetryEvent =
  // A member's session.
  | (OfMember & { type: 'session-opened'; session: SessionId; ttlMs: number })
  | (OfMember & { type: 'session-proved'; roundTripMs: number; leftMs: number })
  | (OfMember & {
      type: 'session-renewal-failed'
      detail: string
      leftMs: number
    })
  | (OfMember & { type: 'session-suspect'; leftMs: number })
  | (OfMember & {
      type: 'session-ended'
      session: SessionId
      cause: SessionEndCause
    })
  | (OfMember & { type: 'name-in-use'; holder: SessionId })
  // One partition at one member.
  | (OfPartition & {
      type: 'campaign-ended'
      outcome: 'won' | 'refused' | 'unknown'
    })
  | (OfGrant & { type: 'granted'; how: GrantKind; ownerlessMs: number | null })
  | (OfGrant & { type: 'serving'; acquireMs: number })
  | (OfGrant & {
      type: 'suspected'
      why: 'higher-generation' | 'changed-record'
    })
  | (OfGrant & { type: 'reopened' })
  | (OfGrant & {
      type: 'draining'
      to: MemberName | null
      reason: MoveReason
      inFlight: number
    })
  | (OfGrant & { type: 'drain-overdue'; policy: 'wait' | 'fence' | 'evict' })
  | (OfGrant & {
      type: 'released'
      to: MemberName | null
      drainMs: number
      handOffMs: number
    })
  | (OfGrant & { type: 'lost'; cause: LossCause })
  | (OfGrant & { type: 'acquire-failed'; detail: string; retryMs: number })
  | (OfGrant & { type: 'run-failed'; detail: string; retryMs: number })
  | (OfGrant & {
      type: 'handler-failed'
      handler: 'release' | 'lost'
      detail: string
    })
  | (OfPartition & { type: 'work-refused'; reason: WorkRefusal })
  // The rebalancer.
  | (InGroup & { type: 'rebalancer-elected'; session: SessionId })
  | (InGroup & {
      type: 'rebalancer-deposed'
      session: SessionId
      cause: SessionEndCause
    })
  | (InGroup & { type: 'plan-made'; reason: MoveReason; moves: number })
  | (InGroup & {
      type: 'move-requested'
      partition: PartitionId
      from: MemberName
      to: MemberName | null
      reason: MoveReason
    })
  | (InGroup & {
      type: 'move-ended'
      partition: PartitionId
      outcome: 'moved' | 'cancelled' | 'forced' | 'refused'
      reason: MoveReason
      tookMs: number
    })
  | (InGroup & {
      type: 'rebalance-changed'
      id: string
      state: string
      note: string
    })
  | (InGroup & { type: 'eviction-marked'; member: MemberName; why: string })
  | (InGroup & { type: 'eviction-closed'; member: MemberName })
  // The map and its ways.
  | (InGroup & {
      type: 'mirror-listed'
      revision: number
      keys: number
      why: string
    })
  | (InGroup & { type: 'mirror-broken'; detail: string })
  | (InGroup & {
      type: 'map-published'
      revision: number
      entries: number
      bytes: number
    })
  | (InGroup & { type: 'map-gap'; have: number; got: number })
  | (InGroup & { type: 'map-resynced'; revision: number; tookMs: number })
  | { type: 'store-reachable'; reachable: boolean; detail: string }
  | { type: 'broadcast-connected'; connected: boolean }
  | {
      type: 'http-request'
      method: string
      route: string
      status: number
      tookMs: number
    }
  // What an operator must look at. `code` is stable.
  | (InGroup & { type: 'alarm'; code: AlarmCode; detail: string })

export type AlarmCode =
  | 'fence-ahead'
  | 'store-rewound'
  | 'drain-overdue'
  | 'acquire-overdue'
  | 'mass-expiry'
  | 'store-version'
  | 'store-alarm'
  | 'moves-starved'
  | 'invariant-broken'

export interface Telemetry {
  record(event: TelemetryEvent): void
}
