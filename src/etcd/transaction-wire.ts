/**
 * Transactions and their replies as bytes (`etcdserverpb.TxnRequest` and `TxnResponse` of etcd's
 * `rpc.proto`). A commit batch is up to 120 nested transactions; by the client library's stub, which first
 * builds a tree of objects, one costs a member as much as all else that it does for the batch.
 *
 * Keys and values are UTF-8. Fields are written from the last to the first (`wire-writer.ts`).
 */
import type {
  Compare,
  KeyValue,
  Operation,
  OperationResult,
  Transaction,
  TransactionResult,
} from '../core/transaction.ts'
import { encodeRange } from './codec.ts'
import { readKeyValue, wholeEntry } from './key-value-wire.ts'
import { HEADER_REVISION, LENGTH, tagOf, VARINT, WireReader } from './wire-reader.ts'
import { WireWriter } from './wire-writer.ts'

export type TransactionReply = {
  readonly revision: number
  readonly result: TransactionResult
}

const RESULT = { equal: 0, greater: 1, notEqual: 3 }
const TARGET = { create: 1, value: 3, lease: 4 }
const DESCENDING = 2
const BY_MOD_REVISION = 3

const writer = new WireWriter()

export function writeTransaction(transaction: Transaction): Buffer {
  writer.begin()
  putTransaction(transaction)
  return writer.message()
}

/** @throws RangeError, Error when the bytes are no reply to this transaction */
export function readTransactionReply(bytes: Buffer, transaction: Transaction): TransactionReply {
  const reply = readReply(new WireReader(bytes), bytes.length, transaction)
  // No store is at revision 0; a reply of nothing would read as a compare that failed.
  if (reply.revision === 0) throw new Error('etcd sent a reply without a revision')
  return reply
}

function putTransaction({ compare, success, failure }: Transaction): void {
  for (let index = failure.length - 1; index >= 0; index -= 1) {
    putOperation(3, failure[index] as Operation)
  }
  for (let index = success.length - 1; index >= 0; index -= 1) {
    putOperation(2, success[index] as Operation)
  }
  for (let index = compare.length - 1; index >= 0; index -= 1) {
    putCompare(compare[index] as Compare)
  }
}

function putCompare(compare: Compare): void {
  const since = writer.written
  const [target, result] = putTarget(compare)
  writer.text(3, compare.key)
  writer.number(2, target)
  writer.number(1, result)
  writer.wrap(1, since)
}

/** Writes what the key is compared with; what of the key that is, and how. */
function putTarget(compare: Compare): readonly [number, number] {
  switch (compare.type) {
    case 'value-equals':
      writer.text(7, compare.value)
      return [TARGET.value, RESULT.equal]
    case 'absent':
      writer.number(5, 0)
      return [TARGET.create, RESULT.equal]
    case 'present':
      writer.number(5, 0)
      return [TARGET.create, RESULT.greater]
    // An absent key compares as one under lease 0, which no session has.
    case 'lease-equals':
      writer.session(8, compare.session)
      return [TARGET.lease, RESULT.equal]
    case 'lease-differs':
      writer.session(8, compare.session)
      return [TARGET.lease, RESULT.notEqual]
    default:
      return compare satisfies never
  }
}

const REQUEST = { range: 1, put: 2, delete: 3, transaction: 4 }

function putOperation(field: number, operation: Operation): void {
  const since = writer.written
  switch (operation.type) {
    case 'put':
      if (operation.session !== undefined) writer.session(3, operation.session)
      writer.text(2, operation.value)
      writer.text(1, operation.key)
      writer.wrap(REQUEST.put, since)
      break
    case 'delete':
      writer.text(1, operation.key)
      writer.wrap(REQUEST.delete, since)
      break
    case 'get':
      writer.text(1, operation.key)
      writer.wrap(REQUEST.range, since)
      break
    case 'summary':
      putSummary(operation.prefix)
      writer.wrap(REQUEST.range, since)
      break
    case 'transaction':
      putTransaction(operation)
      writer.wrap(REQUEST.transaction, since)
      break
    default:
      operation satisfies never
  }
  writer.wrap(field, since)
}

/** One range answers both: `count` is of the whole range, whatever the limit. */
function putSummary(prefix: string): void {
  const { key, range_end: rangeEnd } = encodeRange(prefix)
  writer.number(8, 1)
  writer.number(6, BY_MOD_REVISION)
  writer.number(5, DESCENDING)
  writer.number(3, 1)
  writer.raw(2, rangeEnd)
  writer.raw(1, key)
}

function readReply(reader: WireReader, end: number, transaction: Transaction): TransactionReply {
  let revision = 0
  let succeeded = false
  const results: OperationResult[] = []
  while (reader.position < end) {
    const tag = reader.varint()
    switch (tag) {
      case tagOf(1, LENGTH):
        revision = reader.numberOf(HEADER_REVISION)
        break
      // Before the responses, since fields come in the sequence of their numbers.
      case tagOf(2, VARINT):
        succeeded = reader.varint() !== 0
        break
      case tagOf(3, LENGTH): {
        const operations = succeeded ? transaction.success : transaction.failure
        results.push(readResult(reader, operations[results.length]))
        break
      }
      default:
        reader.skip(tag)
    }
  }
  const { length } = succeeded ? transaction.success : transaction.failure
  if (results.length !== length) throw new Error(`etcd left out response ${results.length}`)
  return { revision, result: { succeeded, results } }
}

/** Each operation gives exactly one response, at the operation's place. */
function readResult(reader: WireReader, operation: Operation | undefined): OperationResult {
  const end = reader.end()
  const tag = reader.varint()
  const field = tag >>> 3
  if (operation === undefined) throw new Error('etcd sent a response too many')
  switch (operation.type) {
    case 'put':
      expectField(field, REQUEST.put)
      reader.position = end
      return { type: 'put' }
    case 'delete':
      expectField(field, REQUEST.delete)
      return { type: 'delete', deleted: reader.numberOf(2) }
    case 'get':
      expectField(field, REQUEST.range)
      return { type: 'get', found: readRange(reader).first }
    case 'summary': {
      expectField(field, REQUEST.range)
      const { first, count } = readRange(reader)
      return { type: 'summary', count, newestModRevision: first?.modRevision ?? 0 }
    }
    case 'transaction': {
      expectField(field, REQUEST.transaction)
      const { succeeded, results } = readReply(reader, reader.end(), operation).result
      return { type: 'transaction', succeeded, results }
    }
    default:
      return operation satisfies never
  }
}

function expectField(field: number, expected: number): void {
  if (field !== expected) throw new Error(`etcd answered ${field} where ${expected} was asked`)
}

function readRange(reader: WireReader) {
  const end = reader.end()
  let first: KeyValue | null = null
  let count = 0
  while (reader.position < end) {
    const tag = reader.varint()
    if (tag === tagOf(2, LENGTH)) {
      const entry = readKeyValue(reader)
      first ??= wholeEntry(entry)
    } else if (tag === tagOf(4, VARINT)) count = reader.varint()
    else reader.skip(tag)
  }
  return { first, count }
}
