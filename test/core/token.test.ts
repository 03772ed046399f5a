/** Plan: the three orders of a token (positions, sortable text, 64-bit number) agree on any two tokens. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { groupName, sessionId } from '../../src/core/ids.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import type { Token } from '../../src/core/token.ts'
import {
  BEFORE_ANY_GRANT,
  comparePositions,
  describeToken,
  isSameGrant,
  positionToInt64,
  sortableToken,
} from '../../src/core/token.ts'

/** Small numbers as well as large ones, so that equal ones meet. */
const anyNumber = (max: number) => fc.oneof(fc.nat({ max: 3 }), fc.nat({ max }))
const anyToken = fc.record({
  group: fc.constant(groupName('orders')),
  partition: fc.constant(17),
  incarnation: fc.oneof(fc.nat({ max: 3 }), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
  generation: anyNumber(2 ** 31 - 1),
  session: fc.constantFrom('0000000000000001', '7fffffffffffffff').map(sessionId),
})

test('tokens, any two, stand in the same order as text, as number and as positions', () => {
  fc.assert(
    fc.property(anyToken, anyToken, (a: Token, b: Token) => {
      const order = Math.sign(comparePositions(a, b))
      const [left, right] = [positionToInt64(a), positionToInt64(b)]
      assert.equal(left < right ? -1 : left > right ? 1 : 0, order)
      assert.equal(Math.sign(comparePositions(b, a)), order === 0 ? 0 : -order)
      if (order !== 0) assert.equal(sortableToken(a) < sortableToken(b), order < 0)
      assert.equal(sortableToken(a) === sortableToken(b), isSameGrant(a, b))
      assert.ok(comparePositions(BEFORE_ANY_GRANT, a) <= 0)
      assert.ok(left >= 0n && left < 2n ** 63n)
    }),
    { numRuns: 500 },
  )
})

test('token, number outside the 64-bit form, is refused', () => {
  for (const position of [
    { incarnation: 2 ** 32, generation: 0 },
    { incarnation: 0, generation: 2 ** 31 },
  ]) {
    assert.throws(
      () => positionToInt64(position),
      (error) => isTenureError(error, 'invariant-broken'),
    )
  }
})

test('token, written for people and for resources, has the documented forms', () => {
  const token: Token = {
    group: groupName('orders'),
    partition: 17,
    incarnation: 1_764_440_000,
    generation: 5,
    session: sessionId('00000000000000a1'),
  }
  assert.equal(describeToken(token), 'orders/17@1764440000.5')
  assert.equal(sortableToken(token), '0000692b37c0.000000000005.00000000000000a1')
})
