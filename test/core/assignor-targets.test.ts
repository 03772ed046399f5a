/** Plan: counts worked out by hand, one rule of rounding or capacity each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MemberLoad } from '../../src/core/assignor-targets.ts'
import { targetCounts } from '../../src/core/assignor-targets.ts'
import { memberName } from '../../src/core/ids.ts'

function load(name: string, fields: Partial<MemberLoad> = {}): MemberLoad {
  return { member: memberName(name), weight: 1, capacity: null, held: 0, returning: 0, ...fields }
}

test('target counts, equal members, give the extras by name whatever their sequence', () => {
  assert.deepEqual(targetCounts(8, [load('c'), load('a'), load('b')]), [2, 3, 3])
})

test('target counts, a member that holds more, keeps the extra', () => {
  assert.deepEqual(targetCounts(7, [load('a', { held: 2 }), load('b', { held: 4 })]), [3, 4])
})

test('target counts, a member whose own come back, has the extra before name order', () => {
  assert.deepEqual(
    targetCounts(7, [load('a', { held: 3 }), load('b', { held: 1, returning: 3 })]),
    [3, 4],
  )
})

test('target counts, weights, share in proportion', () => {
  assert.deepEqual(targetCounts(12, [load('a'), load('b', { weight: 2 }), load('c')]), [3, 6, 3])
})

test('target counts, equal claims to an extra, give it to the larger fraction', () => {
  assert.deepEqual(targetCounts(5, [load('a'), load('b', { weight: 3 })]), [1, 4])
})

test('target counts, capacities, cap one after the other and the rest share what remains', () => {
  const loads = [load('a', { capacity: 1 }), load('b', { capacity: 4 }), load('c'), load('d')]
  assert.deepEqual(targetCounts(19, loads), [1, 4, 7, 7])
  assert.deepEqual(targetCounts(17, [load('a', { capacity: 6 }), ...loads.slice(2)]), [6, 6, 5])
})

test('target counts, capacities that do not reach, sum up to less', () => {
  const loads = [load('a', { capacity: 2 }), load('b', { capacity: 3, weight: 9 })]
  assert.deepEqual(targetCounts(100, loads), [2, 3])
})

test('target counts, no weight or nobody, give nothing', () => {
  assert.deepEqual(targetCounts(5, [load('a', { weight: 0 }), load('b', { weight: -1 })]), [0, 0])
  assert.deepEqual(targetCounts(5, []), [])
})

test('target counts, weights beyond exact products, stay exact', () => {
  const heavy = 2 ** 52
  const loads = [load('a', { weight: heavy }), load('b', { weight: heavy - 1 })]
  assert.deepEqual(targetCounts(1_000_000, loads), [500_000, 500_000])
  assert.deepEqual(targetCounts(1_000_001, loads), [500_001, 500_000])
})
