import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readWatchResponse, writeWatchRequest } from '../../src/etcd/watch-wire.ts'
import { watch } from './protocol.ts'

const whole = fc.maxSafeNat()
const lease = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })
const event = fc.record({
  type: fc.constantFrom('Put', 'Delete'),
  kv: fc.record({
    key: fc.string({ unit: 'binary' }),
    value: fc.string({ unit: 'binary', maxLength: 400 }),
    ...{ create_revision: whole, mod_revision: whole, version: whole, lease },
  }),
})
const response = fc.record({
  header: fc.record({ cluster_id: lease, member_id: lease, revision: whole, raft_term: whole }),
  ...{ watch_id: whole, created: fc.boolean(), canceled: fc.boolean(), fragment: fc.boolean() },
  ...{ compact_revision: whole, cancel_reason: fc.string(), events: fc.array(event) },
})

type Response = (typeof response)['generate'] extends (...args: never[]) => { value: infer T }
  ? T
  : never

function encode(message: Response): Buffer {
  const { header, events, ...rest } = message
  const text = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === 'number' || typeof value === 'bigint' ? String(value) : value,
      ]),
    )
  return watch.responseSerialize({
    ...text(rest),
    header: text(header),
    events: events.map(({ type, kv }) => ({
      type,
      kv: { ...text(kv), key: Buffer.from(kv.key), value: Buffer.from(kv.value) },
    })),
  })
}

test('watch wire, any response, reads as what etcd’s description of the protocol wrote', () => {
  fc.assert(
    fc.property(response, (message) => {
      const read = readWatchResponse(encode(message))
      assert.equal(read.revision, message.header.revision)
      assert.equal(read.created, message.created)
      assert.equal(read.canceled, message.canceled)
      assert.equal(read.compactRevision, message.compact_revision)
      assert.equal(read.cancelReason, message.cancel_reason)
      const expected = message.events.map(({ type, kv }) => {
        // Lone surrogates become the replacement character on the way.
        const [key, value] = [kv.key, kv.value].map((text) => Buffer.from(text).toString())
        const modRevision = kv.mod_revision
        if (type === 'Delete') return { type: 'delete', key, modRevision }
        const session = kv.lease === 0n ? null : kv.lease.toString(16).padStart(16, '0')
        const createRevision = kv.create_revision
        return { type: 'put', entry: { key, value, createRevision, modRevision, session } }
      })
      const events = read.events.map((event) => {
        if (event.type === 'delete') return event
        const { key, value, createRevision, modRevision, session } = event.entry
        return { type: 'put', entry: { key, value, createRevision, modRevision, session } }
      })
      assert.deepEqual(events, expected)
    }),
  )
})

test('watch wire, a response that was cut short, is refused', () => {
  fc.assert(
    fc.property(response, fc.nat(), (message, place) => {
      const bytes = encode(message)
      const cut = bytes.subarray(0, place % bytes.length)
      // What is left may happen to end with a whole field; then it says less, and nothing else.
      try {
        assert.ok(readWatchResponse(cut).events.length <= message.events.length)
      } catch (error) {
        assert.ok(error instanceof RangeError)
      }
    }),
  )
})

test('watch wire, fields of a later version, are skipped', () => {
  const later = Buffer.from([0xa0, 0x06, 0x96, 0x01, 0xa9, 0x06, 1, 2, 3, 4, 5, 6, 7, 8])
  const more = Buffer.from([0xb2, 0x06, 2, 9, 9, 0xbd, 0x06, 1, 2, 3, 4])
  const known = Buffer.from([0x18, 1])
  assert.equal(readWatchResponse(Buffer.concat([later, known, more])).created, true)
  assert.throws(() => readWatchResponse(Buffer.from([0x1f])), RangeError)
})

test('watch wire, any request, is read by etcd’s description of the protocol as it was meant', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), whole, fc.boolean(), (from, to, revision, notify) => {
      const key = Buffer.from(from)
      const rangeEnd = Buffer.from(to)
      const bytes = writeWatchRequest({
        ...{ key, rangeEnd, startRevision: revision, progressNotify: notify },
      })
      const { create_request: read } = watch.requestDeserialize(bytes) as {
        readonly create_request: object
      }
      const meant = {
        ...{ key, range_end: rangeEnd, start_revision: String(revision) },
        progress_notify: notify,
      }
      assert.deepEqual({ ...read, ...meant }, read)
    }),
  )
})
