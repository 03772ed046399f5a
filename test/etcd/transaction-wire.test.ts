/**
 * Plan: any transaction, nested ones and large ones among them, is read by etcd's own description of the
 * protocol as the library's stub would have sent it; any reply is read as that description wrote it; a reply
 * that is none to this transaction is refused.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stubTransaction } from '../../src/bench/raw-transaction.ts'
import type { SessionId } from '../../src/core/ids.ts'
import type {
  KeyValue,
  Operation,
  OperationResult,
  Transaction,
} from '../../src/core/transaction.ts'
import { encodeLease } from '../../src/etcd/codec.ts'
import { readTransactionReply, writeTransaction } from '../../src/etcd/transaction-wire.ts'
import { txn } from './protocol.ts'

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 400 }))
const session = fc
  .bigInt({ min: 1n, max: 2n ** 64n - 1n })
  .map((lease) => lease.toString(16).padStart(16, '0') as SessionId)
const compare = fc.oneof(
  fc.record({ type: fc.constant('value-equals' as const), key: text, value: text }),
  fc.record({ type: fc.constant('absent' as const), key: text }),
  fc.record({ type: fc.constant('present' as const), key: text }),
  fc.record({ type: fc.constant('lease-equals' as const), key: text, session }),
  fc.record({ type: fc.constant('lease-differs' as const), key: text, session }),
)
const flat: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ type: fc.constant('put' as const), key: text, value: text }),
  fc.record({ type: fc.constant('put' as const), key: text, value: text, session }),
  fc.record({ type: fc.constant('delete' as const), key: text }),
  fc.record({ type: fc.constant('get' as const), key: text }),
  fc.record({ type: fc.constant('summary' as const), prefix: text }),
)
const transactionOf = (operation: fc.Arbitrary<Operation>): fc.Arbitrary<Transaction> =>
  fc.record({
    compare: fc.array(compare, { maxLength: 4 }),
    success: fc.array(operation, { maxLength: 6 }),
    failure: fc.array(operation, { maxLength: 3 }),
  })
const nested = transactionOf(flat).map((inner): Operation => ({ type: 'transaction', ...inner }))
const transaction = transactionOf(fc.oneof(flat, nested))

test('transaction wire, any transaction, is read by etcd’s description of the protocol as the stub’s', () => {
  fc.assert(
    fc.property(transaction, (one) => {
      const meant = txn.requestDeserialize(txn.requestSerialize(stubTransaction(one)))
      assert.deepEqual(txn.requestDeserialize(writeTransaction(one)), meant)
    }),
  )
})

test('transaction wire, one larger than all before it, is written whole', () => {
  const value = 'grün '.repeat(20_000)
  const success = Array.from({ length: 20 }, (_, index): Operation => {
    return { type: 'put', key: `key-${index}`, value }
  })
  const one = { compare: [], success, failure: [] }
  const meant = txn.requestDeserialize(txn.requestSerialize(stubTransaction(one)))
  const bytes = writeTransaction(one)
  // Bytes of its own: the next one does not write over them.
  writeTransaction({ ...one, success: success.slice(1) })
  assert.deepEqual(txn.requestDeserialize(bytes), meant)
})

const entry: fc.Arbitrary<KeyValue> = fc
  .record({
    ...{ key: fc.string(), value: fc.string() },
    ...{ createRevision: fc.maxSafeNat(), modRevision: fc.maxSafeNat() },
    session: fc.option(session),
  })
  .map((fields) => ({ ...fields }))
const answers = fc.infiniteStream(
  fc.record({ found: fc.option(entry), number: fc.maxSafeNat(), succeeded: fc.boolean() }),
)

type Answers = Iterator<{
  readonly found: KeyValue | null
  readonly number: number
  readonly succeeded: boolean
}>

/** A reply as etcd would send it, and what it says. */
function reply(one: Transaction, from: Answers, revision: number) {
  const { succeeded } = from.next().value
  const operations = succeeded ? one.success : one.failure
  const all = operations.map((operation) => response(operation, from))
  const results = all.map(({ result }) => result)
  const header = { revision: String(revision), cluster_id: '7', member_id: '8', raft_term: '9' }
  const message = { header, succeeded, responses: all.map(({ sent }) => sent) }
  return { message, succeeded, results }
}

function response(
  operation: Operation,
  from: Answers,
): { readonly sent: object; readonly result: OperationResult } {
  const { found, number } = from.next().value
  const header = { revision: '5' }
  switch (operation.type) {
    case 'put':
      return { sent: { response_put: { header } }, result: { type: 'put' } }
    case 'delete': {
      const sent = { response_delete_range: { header, deleted: String(number) } }
      return { sent, result: { type: 'delete', deleted: number } }
    }
    case 'get':
    case 'summary': {
      const kvs = found === null ? [] : [wireEntry(found)]
      const sent = { response_range: { header, kvs, more: false, count: String(number) } }
      if (operation.type === 'get') return { sent, result: { type: 'get', found } }
      const newestModRevision = found?.modRevision ?? 0
      return { sent, result: { type: 'summary', count: number, newestModRevision } }
    }
    case 'transaction': {
      const { message, succeeded, results } = reply(operation, from, 5)
      return {
        sent: { response_txn: message },
        result: { type: 'transaction', succeeded, results },
      }
    }
    default:
      return operation satisfies never
  }
}

function wireEntry({ key, value, createRevision, modRevision, session: lease }: KeyValue) {
  return {
    ...{ key: Buffer.from(key), value: Buffer.from(value), version: '3' },
    ...{ create_revision: String(createRevision), mod_revision: String(modRevision) },
    lease: lease === null ? '0' : encodeLease(lease),
  }
}

test('transaction wire, any reply, reads as what etcd’s description of the protocol wrote', () => {
  fc.assert(
    fc.property(transaction, answers, fc.integer({ min: 1 }), (one, stream, revision) => {
      const { message, succeeded, results } = reply(one, stream, revision)
      const read = readTransactionReply(txn.responseSerialize(message), one)
      assert.deepEqual(read, { revision, result: { succeeded, results } })
    }),
  )
})

test('transaction wire, a reply to another transaction, or half of one, is refused', () => {
  const get: Operation = { type: 'get', key: 'a' }
  const put: Operation = { type: 'put', key: 'a', value: '1' }
  const of = (...success: readonly Operation[]) => ({ compare: [], success, failure: [get] })
  const bytesOf = (message: object) =>
    txn.responseSerialize({ header: { revision: '5' }, succeeded: true, ...message })
  const wrote = { response_put: { header: {} } }
  const bytes = bytesOf({ responses: [wrote, wrote] })
  assert.doesNotThrow(() => readTransactionReply(bytes, of(put, put)))
  for (const other of [of(put), of(put, put, put), of(put, get), of(get, get)]) {
    assert.throws(() => readTransactionReply(bytes, other), /etcd/)
  }
  for (let end = 0; end < bytes.length; end += 1) {
    assert.throws(() => readTransactionReply(bytes.subarray(0, end), of(put, put)))
  }
})
