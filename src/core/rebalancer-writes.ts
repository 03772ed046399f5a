/**
 * What a rebalancer writes besides partitions: operators' rebalances, the cordon of a drain, an eviction
 * mark, and the end of a freeze. Each is one transaction that compares its own election (S9) and what
 * it replaces.
 */
import type { MemberName, SessionId } from './ids.ts'
import type { GroupKeys } from './keys.ts'
import type { OperatorMark, RebalanceRecord } from './operator-records.ts'
import { encodeOperatorMark, encodeRebalance } from './operator-records.ts'
import type { Compare, Operation, Transaction } from './transaction.ts'

export type RecordWrite =
  | {
      readonly type: 'rebalance'
      readonly before: RebalanceRecord
      readonly after: RebalanceRecord
    }
  /** Removes the records of finished rebalances. */
  | { readonly type: 'forget'; readonly ids: readonly string[] }
  | { readonly type: 'cordon'; readonly member: MemberName; readonly mark: OperatorMark }
  | { readonly type: 'uncordon'; readonly member: MemberName; readonly mark: OperatorMark }
  /** The mark stands under the member's own lease, so it goes when the session goes. */
  | {
      readonly type: 'evict'
      readonly member: MemberName
      readonly session: SessionId
      readonly mark: OperatorMark
    }
  | { readonly type: 'unfreeze'; readonly mark: OperatorMark }

export function writeTransaction(
  keys: GroupKeys,
  rebalancer: SessionId,
  write: RecordWrite,
): Transaction {
  const { compare, success } = change(keys, write)
  const elected: Compare = { type: 'lease-equals', key: keys.rebalancer, session: rebalancer }
  return {
    compare: [elected, ...compare],
    success,
    failure: [{ type: 'get', key: keys.rebalancer }],
  }
}

function change(
  keys: GroupKeys,
  write: RecordWrite,
): { readonly compare: readonly Compare[]; readonly success: readonly Operation[] } {
  switch (write.type) {
    case 'rebalance': {
      const key = keys.rebalance(write.before.id)
      return {
        compare: [{ type: 'value-equals', key, value: encodeRebalance(write.before) }],
        success: [{ type: 'put', key, value: encodeRebalance(write.after) }],
      }
    }
    case 'forget':
      return {
        compare: [],
        success: write.ids.map((id) => ({ type: 'delete', key: keys.rebalance(id) })),
      }
    case 'cordon': {
      const key = keys.cordon(write.member)
      return {
        compare: [{ type: 'absent', key }],
        success: [{ type: 'put', key, value: encodeOperatorMark(write.mark) }],
      }
    }
    case 'uncordon':
      return removal(keys.cordon(write.member), write.mark)
    case 'evict': {
      const { member, session, mark } = write
      const key = keys.eviction(member)
      return {
        compare: [
          { type: 'lease-equals', key: keys.member(member), session },
          { type: 'absent', key },
        ],
        success: [{ type: 'put', key, value: encodeOperatorMark(mark), session }],
      }
    }
    case 'unfreeze':
      return removal(keys.freeze, write.mark)
    default:
      return write satisfies never
  }
}

/** Only as long as it is the same mark: an operator may have set another meanwhile. */
function removal(key: string, mark: OperatorMark) {
  const compare: readonly Compare[] = [
    { type: 'value-equals', key, value: encodeOperatorMark(mark) },
  ]
  const success: readonly Operation[] = [{ type: 'delete', key }]
  return { compare, success }
}
