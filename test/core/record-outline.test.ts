/**
 * Plan: the outline of whatever the production commits write, whole or with some characters changed, is that
 * of the decoded record, or the same error; and what they write is read without a parser.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Commit, elect, halt, handOver, revoke, vacate } from '../../src/core/commit.ts'
import { type MemberName, memberName, operationId, sessionId } from '../../src/core/ids.ts'
import {
  decodePartitionRecord,
  type Owner,
  type PartitionRecord,
  type PendingMove,
  recordOwner,
} from '../../src/core/partition-record.ts'
import { outlineRecord } from '../../src/core/record-outline.ts'
import { TenureError } from '../../src/core/tenure-error.ts'

const A: Owner = { member: memberName('orders-1'), session: sessionId('00000000000000a1') }
const B: Owner = { member: memberName('orders_2'), session: sessionId('00000000000000b2') }
const REBALANCER = sessionId('00000000000000e1')
const stamp = (number: number) => ({
  operation: operationId(`op${number}`),
  atMs: 1_764_440_000_000,
})
/** As the rebalancer makes it: an outline reads this order of fields without a parser. */
const moveTo = (to: MemberName | null): PendingMove => ({
  ...{ id: 'm1', to, reason: 'balance', by: 'rebalancer', rewrites: 0, atMs: 5 },
})

/** A record as the next process has it: read from its text. */
function stored<Phase extends PartitionRecord['phase']>({ value }: Commit, _phase: Phase) {
  const record = decodePartitionRecord(value, 7) as PartitionRecord & { readonly phase: Phase }
  return { raw: value, record }
}

function written(): readonly string[] {
  const first = elect(7, null, A, 1_764_440_000, stamp(1))
  const asked = revoke(7, stored(first, 'owned'), moveTo(B.member), REBALANCER, stamp(2))
  const second = handOver(7, stored(asked, 'revoking'), B, 1_764_440_000, stamp(3))
  const toNobody = revoke(7, stored(second, 'owned'), moveTo(null), REBALANCER, stamp(4))
  const third = vacate(7, stored(toNobody, 'revoking'), stamp(5))
  const halted = halt(7, stored(second, 'owned'), B, 'fence-ahead', stamp(6))
  return [first, asked, second, toNobody, third, halted].map(({ value }) => value)
}

/** What the outline says itself; what it tells of a plain grant is tested with the table that keeps it. */
function bareOutline(text: string) {
  const { plain: _, ...outline } = outlineRecord(text, 7)
  return outline
}

function decodedOutline(text: string) {
  const record = decodePartitionRecord(text, 7)
  const { phase, incarnation, generation } = record
  const named = (owner: Owner | null) => owner && { member: owner.member, session: owner.session }
  const previous = named(record.previous ?? null)
  return { phase, incarnation, generation, owner: named(recordOwner(record)), previous }
}

function outcomeOf(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error instanceof TenureError ? error.code : error
  }
}

test('record outline, of all that commits write, is that of the decoded record', () => {
  for (const text of written()) assert.deepEqual(bareOutline(text), decodedOutline(text), text)
})

test('record outline, of a grant or a revoke, parses nothing', (t) => {
  const texts = written().slice(0, 4)
  const parse = t.mock.method(JSON, 'parse')
  for (const text of texts) outlineRecord(text, 7)
  assert.equal(parse.mock.callCount(), 0)
})

// Found by the test below, once in some thousand runs: a nought before other digits is no JSON.
test('record outline, of a number with a nought before it, is malformed wherever the number stands', () => {
  for (const text of written()) {
    for (const { index } of text.matchAll(/(?<=":)\d/g)) {
      const changed = `${text.slice(0, index)}0${text.slice(index)}`
      assert.equal(
        outcomeOf(() => outlineRecord(changed, 7)),
        'record-malformed',
        changed,
      )
    }
  }
})

test('record outline, of a text with characters changed, is that of the decoded record or its error', () => {
  const character = fc.constantFrom(...'0123456789{}[]",:.-abnull\\ \n')
  const change = fc.record({
    at: fc.nat(400),
    cut: fc.nat(3),
    put: fc.array(character, { maxLength: 3 }),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...written()),
      fc.array(change, { maxLength: 3 }),
      (text, changes) => {
        const changed = changes.reduce(
          (now, { at, cut, put }) => now.slice(0, at) + put.join('') + now.slice(at + cut),
          text,
        )
        assert.deepEqual(
          outcomeOf(() => bareOutline(changed)),
          outcomeOf(() => decodedOutline(changed)),
          changed,
        )
      },
    ),
    { numRuns: 20_000 },
  )
})
