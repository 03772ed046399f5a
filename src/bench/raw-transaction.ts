/** A transaction as the client library's stub takes it, for the limit: raw gRPC as a program without Tenure has it. */
import {
  CompareResult,
  CompareTarget,
  type ICompare,
  type IRequestOp,
  type ITxnRequest,
  SortOrder,
  SortTarget,
} from 'etcd3'
import type { Compare, Operation, Transaction } from '../core/transaction.ts'
import { encodeKey, encodeLease, encodeRange } from '../etcd/codec.ts'

export function stubTransaction(transaction: Transaction): Required<ITxnRequest> {
  return {
    compare: transaction.compare.map(encodeCompare),
    success: transaction.success.map(encodeOperation),
    failure: transaction.failure.map(encodeOperation),
  }
}

function encodeCompare(compare: Compare): ICompare {
  const key = encodeKey(compare.key)
  switch (compare.type) {
    case 'value-equals':
      return {
        key,
        target: CompareTarget.Value,
        result: CompareResult.Equal,
        value: Buffer.from(compare.value, 'utf8'),
      }
    case 'absent':
      return { key, target: CompareTarget.Create, result: CompareResult.Equal, create_revision: 0 }
    case 'present':
      return {
        key,
        target: CompareTarget.Create,
        result: CompareResult.Greater,
        create_revision: 0,
      }
    // An absent key compares as one under lease 0, which no session has.
    case 'lease-equals':
      return {
        key,
        target: CompareTarget.Lease,
        result: CompareResult.Equal,
        lease: encodeLease(compare.session),
      }
    case 'lease-differs':
      return {
        key,
        target: CompareTarget.Lease,
        result: CompareResult.NotEqual,
        lease: encodeLease(compare.session),
      }
    default:
      return compare satisfies never
  }
}

function encodeOperation(operation: Operation): IRequestOp {
  switch (operation.type) {
    case 'put':
      return {
        request_put: {
          key: encodeKey(operation.key),
          value: Buffer.from(operation.value, 'utf8'),
          ...(operation.session === undefined ? {} : { lease: encodeLease(operation.session) }),
        },
      }
    case 'delete':
      return { request_delete_range: { key: encodeKey(operation.key) } }
    case 'get':
      return { request_range: { key: encodeKey(operation.key) } }
    case 'summary':
      // One range answers both: `count` is of the whole range, whatever the limit.
      return {
        request_range: {
          ...encodeRange(operation.prefix),
          limit: 1,
          keys_only: true,
          sort_target: SortTarget.Mod,
          sort_order: SortOrder.Descend,
        },
      }
    case 'transaction':
      return { request_txn: stubTransaction(operation) }
    default:
      return operation satisfies never
  }
}
