/**
 * Plan: a grant is read off its bytes, wherever they stand in a buffer, as it is off its text; and of whatever
 * else, both readers say that it is none.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { elect, handOver, revoke } from '../../src/core/commit.ts'
import { type MemberName, memberName, operationId, sessionId } from '../../src/core/ids.ts'
import type { Owner, PartitionRecord } from '../../src/core/partition-record.ts'
import { decodePartitionRecord } from '../../src/core/partition-record.ts'
import { readPlainGrant } from '../../src/core/plain-grant.ts'
import { readPlainGrantBytes } from '../../src/core/plain-grant-bytes.ts'

const A: Owner = { member: memberName('orders-1'), session: sessionId('00000000000000a1') }
const B: Owner = { member: memberName('orders_2'), session: sessionId('00000000000000b2') }
const stamp = (operation: string) => ({
  operation: operationId(operation),
  atMs: 1_764_440_000_000,
})

function stored<Phase extends PartitionRecord['phase']>(raw: string, _phase: Phase) {
  const record = decodePartitionRecord(raw, 7) as PartitionRecord & { readonly phase: Phase }
  return { raw, record }
}

/** A first grant, one after a hand-over, one that is asked to be given up, and some that are no grants. */
function texts(): readonly string[] {
  const first = elect(7, null, A, 1_764_440_000, stamp('00ff00ff00ff00ff')).value
  const move = { id: 'm1', to: B.member as MemberName | null, reason: 'balance', by: 'rebalancer' }
  const asked = revoke(
    ...([7, stored(first, 'owned')] as const),
    { ...move, reason: 'balance', rewrites: 0, atMs: 5 },
    ...([sessionId('00000000000000e1'), stamp('0123456789abcdef')] as const),
  ).value
  const second = handOver(
    ...([7, stored(asked, 'revoking'), B, 1_764_440_000] as const),
    stamp('fedcba9876543210'),
  ).value
  const strange = second.replaceAll('orders_2', 'grün')
  return [first, second, first.replace('orders-1', 'x'), asked, strange, '', '{}', 'null']
}

/** In the middle of other bytes, as in a message. */
function readBytes(text: string) {
  const value = Buffer.from(text)
  const buffer = Buffer.concat([Buffer.from('"a1}'), value, Buffer.from('0}"f')])
  return readPlainGrantBytes({ buffer, from: 4, to: 4 + value.length })
}

test('plain grant, of texts as this build writes them, reads the same off bytes', () => {
  const read = texts().map((text) => readBytes(text))
  assert.deepEqual(
    read.slice(0, 3).map((grant) => grant?.owner.member),
    ['orders-1', 'orders_2', 'x'],
  )
  assert.deepEqual(read[1]?.previous, A)
  // Of another phase, and with a name that is not ASCII: for the text's reader to look at.
  assert.deepEqual(read.slice(3), [null, null, null, null, null])
  for (const [index, text] of texts().entries()) {
    if (index !== 4) assert.deepEqual(read[index], readPlainGrant(text), text)
  }
})

test('plain grant, of a text with characters changed, reads the same off bytes', () => {
  const character = fc.constantFrom(...'0123456789{}[]",:.-abfgnullF\\ \n')
  const change = fc.record({
    ...{ at: fc.nat(400), cut: fc.nat(3) },
    put: fc.array(character, { maxLength: 3 }),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...texts().slice(0, 4)),
      fc.array(change, { maxLength: 3 }),
      (text, changes) => {
        const changed = changes.reduce(
          (now, { at, cut, put }) => now.slice(0, at) + put.join('') + now.slice(at + cut),
          text,
        )
        assert.deepEqual(readBytes(changed), readPlainGrant(changed), changed)
      },
    ),
    { numRuns: 20_000 },
  )
})

test('plain grant, of many owners, each keeps its own names', () => {
  const session = fc.stringMatching(/^[0-7][0-9a-f]{15}$/)
  const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(name, session), { maxLength: 50 }), (owners) => {
      for (const [member, of] of owners) {
        const owner = { member, session: of } as unknown as Owner
        const text = elect(7, null, owner, 1, stamp('00ff00ff00ff00ff')).value
        assert.deepEqual(readBytes(text)?.owner, { member, session: of })
      }
    }),
  )
})
