/**
 * What operators leave in etcd: freeze, disable, cordon and evictions (who, why, until when), and
 * rebalances. All are durable, so any serve process, now or after a restart, acts on them.
 */
import type { MemberName, PartitionId } from './ids.ts'
import { readVersion } from './record-format.ts'

/** The value of `freeze`, `disabled/…`, `cordons/…` and `evictions/…`. */
export type OperatorMark = {
  readonly by: string
  readonly why: string
  readonly atMs: number
  /** Wall time after which it no longer counts, for display and for the operator's reminder; null: until undone. */
  readonly untilMs: number | null
}

export type RebalanceKind =
  | { readonly type: 'balance' }
  | {
      readonly type: 'move'
      readonly partition: PartitionId
      readonly to: MemberName
    }
  | { readonly type: 'drain'; readonly member: MemberName }

export type RebalanceState =
  | 'requested'
  | 'running'
  | 'done'
  | 'failed'
  | 'cancelling'
  | 'cancelled'

/** One planned change of ownership: bounded in size, whatever P is. */
export type RebalanceRecord = {
  readonly id: string
  readonly kind: RebalanceKind
  readonly state: RebalanceState
  readonly reason: string
  readonly by: string
  /** Moves planned when it began running; null before. */
  readonly planned: number | null
  readonly moved: number
  readonly requestedAtMs: number
  readonly finishedAtMs: number | null
  /** Of a move: the generation that stood when it began. A higher one says that it is over. */
  readonly fromGeneration?: number
  /** Why it failed or what it waits for; empty otherwise. */
  readonly note: string
}

/** How many finished rebalances are kept. */
export const REBALANCES_KEPT = 100

export function encodeOperatorMark(mark: OperatorMark): string {
  return JSON.stringify({ v: 1, ...mark })
}

/** @throws TenureError `record-malformed` or `record-version-unknown`. */
export function decodeOperatorMark(text: string): OperatorMark {
  const { v: _, ...mark } = readVersion(text, 'operator record')
  return mark as unknown as OperatorMark
}

export function encodeRebalance(record: RebalanceRecord): string {
  return JSON.stringify({ v: 1, ...record })
}

/** @throws TenureError `record-malformed` or `record-version-unknown`. */
export function decodeRebalance(text: string): RebalanceRecord {
  const { v: _, ...record } = readVersion(text, 'rebalance')
  return record as unknown as RebalanceRecord
}

export function isFinished(state: RebalanceState): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}
