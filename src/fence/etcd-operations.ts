/**
 * The parts of etcd transactions that the fence reads and makes. Numbers stand for the client's enums,
 * since a fence loads no client.
 */
import type { ICompare, IRequestOp, ITxnRequest } from 'etcd3'
import type { Sealed } from '../core/fence.ts'
import type { GroupName, PartitionId } from '../core/ids.ts'
import { createTenureError } from '../core/tenure-error.ts'
import { readSortableToken } from '../core/token.ts'

export const DEFAULT_FENCE_PREFIX = '/tenure-fence/'

const EQUAL = 0
const LESS = 2
const TARGET_CREATE = 1
const TARGET_VALUE = 3

/** Where the fence of a partition stands. */
export function fenceKey(
  group: GroupName,
  partition: PartitionId,
  prefix = DEFAULT_FENCE_PREFIX,
): Buffer {
  return Buffer.from(`${prefix}${group}/${String(partition).padStart(6, '0')}`)
}

export function isAbsent(key: Buffer): ICompare {
  return { key, target: TARGET_CREATE, result: EQUAL, create_revision: 0 }
}

export function valueEquals(key: Buffer, value: Buffer): ICompare {
  return { key, target: TARGET_VALUE, result: EQUAL, value }
}

/** False for an absent key. Bytes are compared, so a text is above each of its own prefixes. */
export function valueIsBelow(key: Buffer, value: Buffer): ICompare {
  return { key, target: TARGET_VALUE, result: LESS, value }
}

/** @throws TenureError `record-malformed` when the value is no sortable token. */
export function readSortable(key: Buffer, value: Buffer): Sealed {
  const sealed = readSortableToken(value.toString('latin1'))
  if (sealed !== null) return sealed
  throw createTenureError(
    'record-malformed',
    `etcd key ${key} holds no fence: delete it if nothing of Tenure wrote it`,
    { details: { key: key.toString() } },
  )
}

/** True when the operations put or delete the key, nested transactions included. */
export function writesKey(operations: readonly IRequestOp[], key: Buffer): boolean {
  return operations.some(({ request_put, request_delete_range, request_txn }) => {
    if (request_put?.key !== undefined && key.equals(request_put.key)) return true
    if (request_delete_range !== undefined) {
      return covers(request_delete_range.key, request_delete_range.range_end, key)
    }
    return request_txn !== undefined && writesKeyIn(request_txn, key)
  })
}

function writesKeyIn({ success, failure }: ITxnRequest, key: Buffer): boolean {
  return writesKey(success ?? [], key) || writesKey(failure ?? [], key)
}

/** etcd's ranges: without an end one key, with a zero byte as the end all keys from the first on. */
function covers(first: Buffer | undefined, end: Buffer | undefined, key: Buffer): boolean {
  if (first === undefined) return false
  if (end === undefined || end.length === 0) return key.equals(first)
  if (key.compare(first) < 0) return false
  return (end.length === 1 && end[0] === 0) || key.compare(end) < 0
}
