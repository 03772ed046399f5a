/** Plan: published FNV-1a vectors, and a plain loop over the platform's own UTF-8 bytes as oracle. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fnv1a32, partitionOf } from '../../src/core/partition-key.ts'

const VECTORS: readonly (readonly [string, number])[] = [
  ['', 0x811c9dc5],
  ['a', 0xe40c292c],
  ['b', 0xe70c2de5],
  ['foo', 0xa9f37ed7],
  ['foobar', 0xbf9cf968],
  ['hello', 0x4f9f2cab],
]

/** Any string of 16-bit units, lone surrogates included. */
const ANY_TEXT = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd7f0, max: 0xe00f })))
    .map((units) => String.fromCharCode(...units)),
)

function reference(text: string): number {
  let hash = 0x811c9dc5n
  for (const byte of new TextEncoder().encode(text)) {
    hash = ((hash ^ BigInt(byte)) * 0x01000193n) % 2n ** 32n
  }
  return Number(hash)
}

test('fnv1a32, the published vectors, gives the published values', () => {
  assert.deepEqual(
    VECTORS.map(([text]) => [text, fnv1a32(text)]),
    VECTORS,
  )
})

test('fnv1a32, any text, hashes the bytes that the platform encodes', () => {
  fc.assert(
    fc.property(ANY_TEXT, (text) => assert.equal(fnv1a32(text), reference(text))),
    { numRuns: 2000 },
  )
})

test('fnv1a32, the edges of each UTF-8 length and lone surrogates, agrees with the platform', () => {
  const edges = [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfffd, 0xffff, 0x10000, 0x10ffff]
  const texts = edges.map((point) => String.fromCodePoint(point))
  texts.push('\ud800', '\udc00', '\udc00\ud800', 'a\ud83dz', '\ud83d\ud83d\ude00', '\ude00\ud83d')
  for (const text of texts) assert.equal(fnv1a32(text), reference(text), JSON.stringify(text))
  assert.equal(fnv1a32('\ud800'), fnv1a32('\ufffd'))
})

test('partitionOf, any key and P, is a partition, the unsigned hash modulo P', () => {
  fc.assert(
    fc.property(ANY_TEXT, fc.integer({ min: 1, max: 1_000_000 }), (key, partitions) => {
      const partition = partitionOf(key, partitions)
      assert.ok(Number.isInteger(partition) && partition >= 0 && partition < partitions)
      assert.equal(partition, reference(key) % partitions)
    }),
  )
})

test('partitionOf, 64,000 numbered customers, spreads over all partitions', () => {
  const counts = new Array<number>(64).fill(0)
  for (let index = 0; index < 64_000; index += 1) {
    const partition = partitionOf(`customer-${index}`, 64)
    counts[partition] = (counts[partition] ?? 0) + 1
  }
  assert.ok(Math.min(...counts) > 800 && Math.max(...counts) < 1200, counts.join(' '))
})
