/** Plan: examples of the format, then round trip, injectivity and legality over any string. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeSubjectToken, encodeSubjectToken, isPlainKey } from '../../src/core/subject-token.ts'

const EXAMPLES: readonly (readonly [string, string])[] = [
  ['customer-17', 'customer-17'],
  ['Zoë/№7', 'Zoë/№7'],
  ['😀', '😀'],
  ['', '%'],
  ['%', '%25'],
  ['%25', '%2525'],
  ['100%', '100%25'],
  ['a.b', 'a%2Eb'],
  ['*', '%2A'],
  ['>', '%3E'],
  [' ', '%20'],
  ['a\tb\r\n', 'a%09b%0D%0A'],
  ['\0', '%00'],
  ['\u007f', '%7F'],
  ['\ud800', '%ED%A0%80'],
  ['x\udfff', 'x%ED%BF%BF'],
  ['\ude00\ud83d', '%ED%B8%80%ED%A0%BD'],
  ['%ED%A0%80', '%25ED%25A0%2580'],
  ['$SYS', '$SYS'],
]

const UNITS = fc.oneof(
  fc.constantFrom('%', '.', '*', '>', ' ', '\0', '2', '5', 'E', 'D', 'A', '\ud83d', '\ude00'),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }),
  fc.integer({ min: 0xd800, max: 0xdfff }).map((unit) => String.fromCharCode(unit)),
)
const ANY_KEY = fc.array(UNITS, { maxLength: 12 }).map((units) => units.join(''))

test('subject token, the examples of each rule, encode and decode as specified', () => {
  for (const [key, token] of EXAMPLES) {
    assert.equal(encodeSubjectToken(key), token, JSON.stringify(key))
    assert.equal(decodeSubjectToken(token), key, token)
  }
})

test('subject token, any key, is one legal token that decodes to that key', () => {
  fc.assert(
    fc.property(ANY_KEY, (key) => {
      const token = encodeSubjectToken(key)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are illegal here
      assert.match(token, /^[^\u0000-\u0020\u007f.*>]+$/)
      assert.equal(Buffer.from(token).toString(), token, 'the token has a UTF-8 form')
      assert.equal(decodeSubjectToken(token), key)
    }),
    { numRuns: 3000 },
  )
})

test('subject token, two different keys, never share a token', () => {
  fc.assert(
    fc.property(ANY_KEY, ANY_KEY, (left, right) => {
      assert.equal(encodeSubjectToken(left) === encodeSubjectToken(right), left === right)
    }),
    { numRuns: 3000 },
  )
})

test('subject token, any text that is no token of a key, decodes to null', () => {
  for (const text of ['', 'a.b', 'a b', '%41', '%2e', '%2', 'a%', '%%', '%C3%A9', '%ED%A0', '*']) {
    assert.equal(decodeSubjectToken(text), null, text)
  }
  fc.assert(
    fc.property(ANY_KEY, (text) => {
      const key = decodeSubjectToken(text)
      if (key !== null) assert.equal(encodeSubjectToken(key), text)
    }),
    { numRuns: 3000 },
  )
})

test('subject token, a plain key, is exactly one that encodes to itself', () => {
  fc.assert(
    fc.property(ANY_KEY, (key) => {
      assert.equal(isPlainKey(key), key === encodeSubjectToken(key))
    }),
    { numRuns: 3000 },
  )
})

test('subject token, a well-formed key that is not empty, reads with a URL decoder', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), (key) => {
      assert.equal(decodeURIComponent(encodeSubjectToken(key)), key)
    }),
  )
})
