import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BenchCase, Comparison, Figures } from '../../src/bench/bench-types.ts'
import { isOutOfReach, rowsOf, TENURE } from '../../src/bench/evaluate.ts'

const METRIC = 'one transaction'
const benchCase: BenchCase = {
  ...{ name: 'a case', rounds: 3, contenders: [], comparisons: [], rivalSettings: null },
}

function measured(values: Readonly<Record<string, readonly number[]>>) {
  const rounds = (each: readonly number[]): readonly Figures[] =>
    each.map((value) => [{ metric: METRIC, unit: 'ms', values: [value] }])
  return new Map(Object.entries(values).map(([name, each]) => [name, rounds(each)]))
}

function rowOf(comparison: Partial<Comparison>, values: Parameters<typeof measured>[0]) {
  const whole: Comparison = {
    ...{ metric: METRIC, statistic: 'median', against: 'bare', target: { atMost: 1.15 } },
    ...comparison,
  }
  const [row] = rowsOf('fence', benchCase, [whole], measured(values))
  assert.ok(row)
  return row
}

const bound = { contender: 'least', why: 'one look' }

test('comparison, its ratio, is the median of the rounds, each of neighbours in time', () => {
  // The machine is four times slower in the second round: the ratio is not.
  const row = rowOf({}, { [TENURE]: [2, 8, 3], bare: [1, 4, 3] })
  assert.equal(row.ratio, 2)
  assert.equal(row.met, false)
  assert.equal(row.bound, null)
})

test('comparison with a bound, which misses the target as well, is out of reach', () => {
  const row = rowOf({ bound }, { [TENURE]: [2, 2, 2], bare: [1, 1, 1], least: [1.4, 1.5, 1.6] })
  assert.deepEqual(row.bound, { ratio: 1.5, why: 'one look' })
  assert.equal(row.met, false)
  assert.equal(isOutOfReach(row), true)
})

test('comparison with a bound that meets the target, is missed by Tenure alone', () => {
  const row = rowOf({ bound }, { [TENURE]: [2, 2, 2], bare: [1, 1, 1], least: [1.1, 1.1, 1.1] })
  assert.equal(row.met, false)
  assert.equal(isOutOfReach(row), false)
})

test('comparison with a bound that was not measured, has none', () => {
  const row = rowOf({ bound }, { [TENURE]: [2], bare: [1] })
  assert.equal(row.bound, null)
  assert.equal(isOutOfReach(row), false)
})

test('comparison against a contender below its least value, is void', () => {
  const row = rowOf({ voidBelow: 5 }, { [TENURE]: [1], bare: [1] })
  assert.equal(row.met, null)
  assert.match(row.note, /void: bare reached only 1 ms/)
})
