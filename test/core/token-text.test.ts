import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { groupName, sessionId } from '../../src/core/ids.ts'
import type { Token } from '../../src/core/token.ts'
import { checkTokenOf, decodeTokenHeader, encodeTokenHeader } from '../../src/core/token-text.ts'

const token: Token = {
  group: groupName('orders'),
  partition: 17,
  incarnation: 1_764_440_000,
  generation: 5,
  session: sessionId('00c0ffee00c0ffee'),
}
const TEXT = 'v1:orders/17@1764440000.5#00c0ffee00c0ffee'

const tokens = fc.record(
  {
    group: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/).map(groupName),
    partition: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    incarnation: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    generation: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    session: fc
      .bigInt({ min: 1n, max: 2n ** 63n - 1n })
      .map((id) => sessionId(id.toString(16).padStart(16, '0'))),
  },
  { noNullPrototype: true },
)

test('a token, written as documented, is read back whole', () => {
  assert.equal(encodeTokenHeader(token), TEXT)
  assert.deepEqual(decodeTokenHeader(TEXT), token)
  fc.assert(
    fc.property(tokens, (any) => {
      assert.deepEqual(decodeTokenHeader(encodeTokenHeader(any)), any)
    }),
  )
})

test('a text that differs in any character is another token or an error, never the same token', () => {
  fc.assert(
    fc.property(tokens, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }), (any, at, put) => {
      const text = encodeTokenHeader(any)
      const index = at % text.length
      const changed = text.slice(0, index) + put + text.slice(index + 1)
      fc.pre(changed !== text)
      try {
        assert.equal(encodeTokenHeader(decodeTokenHeader(changed)), changed)
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'invalid-argument')
      }
    }),
  )
})

test('malformed texts are refused with a reason', () => {
  const bad = [
    ['', /is no token/],
    ['orders/17@1.5#00c0ffee00c0ffee', /is no token/],
    ['v2:anything', /version 2: version 1 is understood/],
    [` ${TEXT}`, /is no token/],
    [`${TEXT} `, /token\.session/],
    [`${TEXT}\n`, /token\.session/],
    [TEXT.replace('17', '017'), /leading zeros/],
    [TEXT.replace('.5', '.0'), /token\.generation must be a whole number from 1/],
    [TEXT.replace('.5', '.4294967296'), /token\.generation/],
    [TEXT.replace('1764440000', '9999999999'), /token\.incarnation/],
    [TEXT.replace('orders', 'or ders'), /token\.group/],
    [TEXT.replace('00c0', '00C0'), /token\.session/],
    [TEXT.replace('00c0ffee00c0ffee', '0000000000000000'), /token\.session/],
    [`v1:${'g'.repeat(400)}/1@1.1#00c0ffee00c0ffee`, /is no token/],
  ] as const
  for (const [text, message] of bad) {
    assert.throws(() => decodeTokenHeader(text), { code: 'invalid-argument', message }, text)
  }
})

test('a token of another group is refused with both names', () => {
  assert.deepEqual(checkTokenOf(groupName('orders'), { ...token, more: 1 }), token)
  assert.throws(() => checkTokenOf(groupName('invoices'), token), {
    code: 'invalid-argument',
    details: { field: 'token.group', expected: 'invoices', given: 'orders' },
  })
})
