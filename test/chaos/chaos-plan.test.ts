/**
 * Plan: the same seed deals the same faults, and every kind comes round. A bound is the design's own where
 * nothing else broke, and later where something did that bears on it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/testing/seeded-random.ts'
import { dueOf, SETTLE_BOUND_MS } from './disturbances.ts'
import { dealFaults, FAULT_KINDS, type FaultKind } from './fault-kinds.ts'
import type { FaultLine } from './faults.ts'

const CARDS = Object.values(FAULT_KINDS).reduce((sum, { cards }) => sum + cards, 0)

function dealt(seed: number, count: number, isPossible: (kind: FaultKind) => boolean = () => true) {
  const deck = dealFaults(createSeededRandom(seed), isPossible)
  return Array.from({ length: count }, () => {
    const { kind, durationMs, random } = deck.next().value
    return `${kind} ${durationMs} ${random.integer(1000)}`
  })
}

test('a seed names the faults, with their length and their choice of targets', () => {
  assert.deepEqual(dealt(7, 200), dealt(7, 200))
  assert.notDeepEqual(dealt(7, 200), dealt(8, 200))
})

test('one deck holds every kind that is possible, and no other', () => {
  const kinds = dealt(3, CARDS).map((text) => text.split(' ')[0])
  assert.deepEqual(new Set(kinds), new Set(Object.keys(FAULT_KINDS)))
  const without = dealt(3, CARDS, (kind) => kind !== 'worker-clock-jump')
  assert.ok(without.every((text) => !text.startsWith('worker-clock-jump')))
})

const WAITING = {
  ...{ fromMs: 10_000, cameMs: 13_000, boundMs: 5000, classes: ['etcd'] as const, cause: null },
  members: new Set(['w-1']),
}

function fault(of: Partial<FaultLine>): FaultLine {
  return {
    ...{ kind: 'worker-pause', class: 'worker', targets: ['w-1'], fromMs: 11_000, toMs: 12_000 },
    ...{ over: 0, failure: null },
    ...of,
  }
}

test('with nothing else broken the bound is the own one', () => {
  for (const faults of [
    [],
    [fault({ targets: ['w-2'] })],
    // It began when all was over.
    [fault({ fromMs: 13_500, toMs: 20_000 })],
    [fault({ fromMs: 1000, toMs: 6000 })],
    [fault({ kind: 'etcd-compact', class: 'etcd', targets: ['etcd-1'] })],
  ]) {
    const due = dueOf({ faults, leaderChangesMs: [] }, WAITING)
    assert.deepEqual(due, { dueMs: 15_000, isClean: true })
  }
})

test('the fault that it begins with moves nothing', () => {
  const cause = fault({ fromMs: 10_000, toMs: 10_500 })
  const due = dueOf({ faults: [cause], leaderChangesMs: [] }, { ...WAITING, cause })
  assert.deepEqual(due, { dueMs: 15_000, isClean: true })
})

test('what bears on it moves the bound to 2T + 5 s after its end, and so does the next', () => {
  const first = fault({})
  const later = fault({ class: 'etcd', kind: 'etcd-leader-kill', fromMs: 20_000, toMs: 22_000 })
  const waiting = { ...WAITING, cameMs: Number.POSITIVE_INFINITY }
  const one = dueOf({ faults: [first], leaderChangesMs: [] }, waiting)
  assert.deepEqual(one, { dueMs: 12_000 + SETTLE_BOUND_MS, isClean: false })
  const both = dueOf({ faults: [first, later], leaderChangesMs: [] }, waiting)
  assert.deepEqual(both, { dueMs: 22_000 + SETTLE_BOUND_MS, isClean: false })
})

test('another leader of etcd gives 2T + 5 s from the beginning', () => {
  const due = dueOf({ faults: [], leaderChangesMs: [12_500] }, WAITING)
  assert.deepEqual(due, { dueMs: 10_000 + SETTLE_BOUND_MS, isClean: false })
})
