import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync } from 'node:zlib'
import fc from 'fast-check'
import { takeSnapshot } from '../../src/core/map-merge.ts'
import { readRuns, writeRuns } from '../../src/core/map-runs.ts'
import {
  decodeDelta,
  decodeDigest,
  decodeSnapshot,
  encodeDelta,
  encodeDigest,
  encodeSnapshot,
  mapSubjects,
} from '../../src/core/map-wire.ts'
import { OwnershipMap } from '../../src/core/ownership-map.ts'
import { decodeServing, encodeServing } from '../../src/core/serving-wire.ts'
import { delta, entry, INCARNATION, mapMember, member, replay } from './map-world.ts'

/** Random but the same each time, so that a size is a fact and not a chance. */
function createFractions(): () => number {
  let seed = 17
  return () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed / 2 ** 32
  }
}

/** After long use: 100 members, owners without a pattern, generations 1 .. 20, a few moves under way. */
function usedMap(partitions: number): OwnershipMap {
  const fraction = createFractions()
  const map = new OwnershipMap(INCARNATION, partitions)
  for (let number = 0; number < 100; number += 1) map.putMember(mapMember(number, number + 1))
  for (let partition = 0; partition < partitions; partition += 1) {
    const generation = 1 + Math.floor(fraction() * 20)
    const owned = entry(partition, generation, Math.floor(fraction() * 100), 1000 + partition)
    map.put(fraction() < 0.01 ? { ...owned, phase: 2 } : owned)
    if (fraction() < 0.99) map.markServing(partition, INCARNATION, generation, true)
  }
  map.completeTo = 1000 + partitions
  return map
}

test('snapshot: 10,000 partitions deflate to at most 25 KiB, 100,000 to at most 256 KiB', (t) => {
  for (const [partitions, limitKib] of [
    [10_000, 25],
    [100_000, 256],
  ] as const) {
    const text = encodeSnapshot(takeSnapshot(usedMap(partitions), 'publisher-1'))
    const kib = deflateSync(text, { level: 1 }).length / 1024
    t.diagnostic(`${partitions} partitions: ${kib.toFixed(1)} KiB`)
    assert.ok(kib <= limitKib, `${partitions} partitions: ${kib.toFixed(1)} KiB`)
  }
})

test('snapshot: encoded and decoded, it is the same, gone owners included', () => {
  const map = usedMap(500)
  map.removeMember({ ...member(7), revision: 2000 })
  map.completeTo = 2000
  const snapshot = takeSnapshot(map, 'publisher-1')
  assert.deepEqual(decodeSnapshot(encodeSnapshot(snapshot)), snapshot)
})

test('delta: encoded and decoded, it is the same', () => {
  const one = delta(7, 9, {
    part: 1,
    parts: 3,
    members: [mapMember(1, 8)],
    gone: [{ ...member(2), revision: 9 }],
    entries: [entry(3, 4, 1, 8), entry(4, 1, null, 9), entry(5, 2, 1, 9), entry(6, 2, 2, 9)],
  })
  assert.deepEqual(decodeDelta(encodeDelta(one)), one)
})

test('digest and serving: encoded and decoded, they are the same', () => {
  const digest = {
    publisher: 'p1',
    ageMs: 12,
    version: { incarnation: INCARNATION, revision: 9 },
    hash: replay([delta(0, 1, { members: [mapMember(1, 1)] })]).hash(),
    counts: { partitions: 16, owned: 4, serving: 3, members: 1 },
  }
  assert.deepEqual(decodeDigest(encodeDigest(digest)), digest)
  const serving = {
    ...member(1),
    serving: [{ partition: 3, incarnation: INCARNATION, generation: 2 }],
    stopped: [{ partition: 9, incarnation: INCARNATION, generation: 1 }],
  }
  assert.deepEqual(decodeServing(encodeServing(serving)), serving)
})

test('decoding: other versions and malformed bodies are null and never throw', () => {
  const good = encodeDelta(delta(7, 9, { entries: [entry(3, 4, 1, 8)] }))
  const spoilt = [
    '',
    'null',
    '{}',
    good.slice(0, -1),
    good.replace('"v":1', '"v":2'),
    good.replace('"partition":[3]', '"partition":[16]'),
    good.replace('"partition":[3]', '"partition":[-1]'),
    good.replace('"generation":[4]', '"generation":[]'),
    good.replace('"phase":[1,1]', '"phase":[4,1]'),
    good.replace('"phase":[1,1]', '"phase":[1,2]'),
    good.replace('"parts":1', '"parts":0'),
    good.replace('"previous":7', '"previous":"7"'),
  ]
  for (const text of spoilt) {
    assert.notEqual(text, good)
    for (const decode of [decodeDelta, decodeDigest, decodeSnapshot, decodeServing]) {
      assert.equal(decode(text), null, text)
    }
  }
  assert.notEqual(decodeDelta(good), null)
})

test('decoding: fields of a newer sender are ignored', () => {
  const one = delta(7, 9, { members: [mapMember(1, 8)] })
  const text = encodeDelta(one)
    .replace('{"v":1', '{"v":1,"new":[1]')
    .replace('"a",8]', '"a",8,"x"]')
  assert.match(text, /"x"/)
  assert.deepEqual(decodeDelta(text), one)
})

test('runs: any column comes back, and runs that do not fit are null', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(2)), (column) => {
      assert.deepEqual(readRuns(writeRuns(column), column.length), column)
    }),
  )
  for (const runs of [[1], [1, 0], [1, 3], [1, 1], [-1, 2], ['1', 2], null]) {
    assert.equal(readRuns(runs, 2), null)
  }
})

test('hash: its text and the subjects are what the format says', () => {
  const map = replay([delta(0, 2, { members: [mapMember(1, 1)], entries: [entry(5, 1, 1, 2)] })])
  assert.equal(map.hash(), '2a6f8fda0054b106')
  assert.equal(mapSubjects('orders').delta, 'tenure.v1.orders.map.delta')
})
