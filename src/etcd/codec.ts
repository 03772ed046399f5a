/**
 * Tenure's transactions, keys and lease ids in etcd's terms and back. Keys and values are UTF-8;
 * 64-bit numbers are decimal strings on etcd's side; revisions fit a JavaScript number for the next
 * few million years, lease ids do not and are hexadecimal strings here.
 */
import {
  CompareResult,
  CompareTarget,
  type ICompare,
  type IKeyValue,
  type IRequestOp,
  type IResponseOp,
  type ITxnRequest,
  type ITxnResponse,
  SortOrder,
  SortTarget,
} from 'etcd3'
import type { SessionId } from '../core/ids.ts'
import type {
  Compare,
  KeyValue,
  Operation,
  OperationResult,
  Transaction,
  TransactionResult,
} from '../core/transaction.ts'

export function encodeTransaction(transaction: Transaction): ITxnRequest {
  return {
    compare: transaction.compare.map(encodeCompare),
    success: transaction.success.map(encodeOperation),
    failure: transaction.failure.map(encodeOperation),
  }
}

/** Each operation gives exactly one response, so results stand at the operations' places. */
export function decodeTransaction(
  transaction: Transaction,
  response: ITxnResponse,
): TransactionResult {
  const operations = response.succeeded ? transaction.success : transaction.failure
  return {
    succeeded: response.succeeded,
    results: operations.map((operation, index) => {
      const result = response.responses[index]
      if (result === undefined) throw new Error(`etcd left out response ${index}`)
      return decodeResult(operation, result)
    }),
  }
}

export function decodeKeyValue(entry: IKeyValue): KeyValue {
  return {
    key: entry.key.toString('utf8'),
    value: entry.value.toString('utf8'),
    createRevision: Number(entry.create_revision),
    modRevision: Number(entry.mod_revision),
    session: decodeLease(entry.lease),
  }
}

export function encodeLease(session: SessionId): string {
  return BigInt(`0x${session}`).toString()
}

export function encodeKey(key: string): Buffer {
  return Buffer.from(key, 'utf8')
}

/** The first key after all keys that start with the prefix; the empty prefix means every key. */
export function encodeRange(prefix: string, after?: string): { key: Buffer; range_end: Buffer } {
  const start = after === undefined ? prefix : `${after}\0`
  return {
    key: start === '' ? Buffer.from([0]) : encodeKey(start),
    range_end: endOfPrefix(encodeKey(prefix)),
  }
}

function decodeLease(lease: string): SessionId | null {
  if (lease === '0') return null
  return BigInt.asUintN(64, BigInt(lease)).toString(16).padStart(16, '0') as SessionId
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
      return { request_txn: encodeTransaction(operation) }
    default:
      return operation satisfies never
  }
}

function decodeResult(operation: Operation, response: IResponseOp): OperationResult {
  switch (operation.type) {
    case 'put':
      return { type: 'put' }
    case 'delete':
      return { type: 'delete', deleted: Number(response.response_delete_range.deleted) }
    case 'get': {
      const entry = response.response_range.kvs[0]
      return { type: 'get', found: entry === undefined ? null : decodeKeyValue(entry) }
    }
    case 'summary': {
      const range = response.response_range
      const newest = range.kvs[0]
      return {
        type: 'summary',
        count: Number(range.count),
        newestModRevision: newest === undefined ? 0 : Number(newest.mod_revision),
      }
    }
    case 'transaction':
      return { type: 'transaction', ...decodeTransaction(operation, response.response_txn) }
    default:
      return operation satisfies never
  }
}

function endOfPrefix(prefix: Buffer): Buffer {
  for (let index = prefix.length - 1; index >= 0; index--) {
    const byte = prefix[index] ?? 0xff
    if (byte < 0xff) return Buffer.concat([prefix.subarray(0, index), Buffer.from([byte + 1])])
  }
  // No key is beyond the last prefix: etcd reads a zero byte as "to the end".
  return Buffer.from([0])
}
