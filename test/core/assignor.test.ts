/** Plan: small situations whose whole answer can be worked out by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assign } from '../../src/core/assignor.ts'
import { campaignOrder, candidateRank } from '../../src/core/assignor-candidates.ts'
import { memberName } from '../../src/core/ids.ts'
import type { PreferenceOrder } from '../../src/core/preference-order.ts'
import { equals, situation } from './assignor-world.ts'

const a = memberName('a')
const b = memberName('b')
const c = memberName('c')
const d = memberName('d')

/** Partition p prefers members as listed for it; anything not listed prefers a, b, c, d. */
function listed(lists: Readonly<Record<number, readonly (typeof a)[]>>): PreferenceOrder {
  return { order: (partition, count) => (lists[partition] ?? [a, b, c, d]).slice(0, count) }
}

test('assignor, no partitions, answers nothing', () => {
  assert.deepEqual(assign(situation({ members: equals('a') })), {
    targets: [],
    moves: [],
    vacancies: [],
    unplaced: [],
    counts: new Map([[a, 0]]),
  })
})

test('assignor, no members, leaves everything as it is and names what has no place', () => {
  const input = situation({ partitions: 4, owners: [a, b, null, b], keeping: new Set([a]) })
  assert.deepEqual(assign(input), {
    targets: [a, null, null, null],
    moves: [],
    vacancies: [],
    unplaced: [1, 2, 3],
    counts: new Map(),
  })
})

test('assignor, vacant partitions, follow the ring order while there is room', () => {
  const order = listed({ 0: [b, a], 1: [b, a], 2: [b, a], 3: [a, b] })
  const input = situation({ partitions: 4, members: equals('a', 'b'), order })
  assert.deepEqual(assign(input).targets, [b, b, a, a])
})

test('assignor, a returning member, gets its own back before strangers take its room', () => {
  const order = listed({ 0: [b, a], 1: [b, a], 2: [a, b], 3: [a, b] })
  const lastOwners = [null, null, b, b]
  const input = situation({ partitions: 4, members: equals('a', 'b'), lastOwners, order })
  assert.deepEqual(assign(input).targets, [a, a, b, b])
})

test('assignor, a returning member that held one more, keeps the extra against name order', () => {
  const owners = [a, null, null, b, null]
  const lastOwners = [null, c, c, null, null]
  const input = situation({ partitions: 4, members: equals('a', 'b', 'c'), owners, lastOwners })
  assert.deepEqual(assign(input).targets, [a, c, c, b])
})

test('assignor, a member back from a restart, gets others than it gave away, though they prefer it', () => {
  const order = listed({ 0: [c], 1: [c], 2: [a], 3: [a], 4: [b], 5: [b] })
  const owners = [a, b, a, a, b, b]
  const cameFrom = (partition: number) => (partition < 2 ? c : null)
  const input = situation({
    partitions: 6,
    members: equals('a', 'b', 'c'),
    owners,
    cameFrom,
    order,
  })
  assert.deepEqual(assign(input).targets, [a, b, c, a, c, b])
})

test('assignor, a member back that all came from, gets some of them back', () => {
  const owners = [a, a, a, a]
  const input = situation({ partitions: 4, members: equals('a', 'b'), owners, cameFrom: () => b })
  assert.equal(assign(input).moves.length, 2)
})

test('assignor, a join, moves what the newcomer prefers and no more than its share', () => {
  const order = listed({ 2: [c], 5: [c], 0: [b] })
  const owners = [a, a, a, b, b, b]
  const input = situation({ partitions: 6, members: equals('a', 'b', 'c'), owners, order })
  assert.deepEqual(assign(input), {
    targets: [a, a, c, b, b, c],
    moves: [
      { partition: 2, from: a, to: c },
      { partition: 5, from: b, to: c },
    ],
    vacancies: [],
    unplaced: [],
    counts: new Map([
      [a, 2],
      [b, 2],
      [c, 2],
    ]),
  })
})

test('assignor, surplus that prefers nobody with room, sheds what prefers others first', () => {
  const order = listed({ 0: [a], 1: [b, c], 2: [a], 3: [b], 4: [b], 5: [b] })
  const owners = [a, a, a, b, b, null]
  const input = situation({ partitions: 5, members: equals('a', 'b', 'c'), owners, order })
  assert.deepEqual(assign(input).moves, [{ partition: 1, from: a, to: c }])
})

test('assignor, a cordoned member, keeps its partitions and the others share the rest', () => {
  const owners = [d, d, d, a, a, a, a]
  const input = situation({
    partitions: 7,
    members: equals('a', 'b'),
    owners,
    keeping: new Set([d]),
  })
  const { targets, moves, counts } = assign(input)
  assert.deepEqual(targets.slice(0, 3), [d, d, d])
  assert.equal(moves.length, 2)
  assert.deepEqual([...counts.values()], [2, 2])
})

test('assignor, a leaving member, has all its partitions moved to those with room', () => {
  const owners = [c, a, c, b]
  const input = situation({ partitions: 4, members: equals('a', 'b'), owners, order: listed({}) })
  assert.deepEqual(assign(input).moves, [
    { partition: 0, from: c, to: a },
    { partition: 2, from: c, to: b },
  ])
})

test('assignor, fewer partitions than members, gives one each to the first with room', () => {
  const input = situation({ partitions: 2, members: equals('a', 'b', 'c'), order: listed({}) })
  assert.deepEqual(assign(input).targets, [a, b])
})

test('assignor, capacity below demand, leaves vacancies unplaced and takes from no owner', () => {
  const members = [
    { member: a, weight: 1, capacity: 1 },
    { member: b, weight: 1, capacity: 2 },
  ]
  const input = situation({ partitions: 6, members, owners: [a, a, a, null, null, null] })
  const { targets, unplaced } = assign(input)
  assert.deepEqual(targets, [a, a, a, b, b, null])
  assert.deepEqual(unplaced, [5])
})

test('assignor, weight zero, gives all up while another has room and keeps it otherwise', () => {
  const idle = { member: a, weight: 0, capacity: null }
  const alone = situation({ partitions: 2, members: [idle], owners: [a, a] })
  assert.deepEqual(assign(alone).targets, [a, a])
  const two = situation({ partitions: 2, members: [idle, ...equals('b')], owners: [a, a] })
  assert.deepEqual(assign(two).targets, [b, b])
})

test('assignor, excluded partitions, get no owner and count for nobody', () => {
  const owners = [a, a, a, b]
  const excluded = new Set([0, 1])
  const input = situation({ partitions: 4, members: equals('a', 'b'), owners, excluded })
  const { targets, moves, unplaced } = assign(input)
  assert.deepEqual(targets, [null, null, a, b])
  assert.deepEqual({ moves, unplaced }, { moves: [], unplaced: [] })
})

test('assignor, an order that knows other names and lacks some, still places everything', () => {
  const order: PreferenceOrder = { order: (_, count) => [memberName('ghost'), b].slice(0, count) }
  const input = situation({ partitions: 4, members: equals('a', 'b'), order })
  assert.deepEqual(assign(input).targets, [b, b, a, a])
})

test('assignor, an order that knows nobody, falls back to names whatever their sequence', () => {
  const order: PreferenceOrder = { order: () => [] }
  const input = situation({ partitions: 3, members: equals('c', 'a', 'b'), order })
  assert.deepEqual(assign(input).targets, [a, b, c])
})

test('campaign order, a target, comes first and the ring order follows without it', () => {
  const question = { partition: 7, target: c, order: listed({}) }
  assert.deepEqual(campaignOrder(question, 4), [c, a, b, d])
  assert.deepEqual(campaignOrder(question, 2), [c, a])
  assert.deepEqual(campaignOrder({ ...question, target: null }, 3), [a, b, c])
  assert.deepEqual(
    [c, a, b, d].map((member) => candidateRank(question, member, 3)),
    [0, 1, 2, 3],
  )
})
