/**
 * Plan: the smallest scope of the liveness search, mutants included; and what the runner makes of reports
 * that show less than it looks like. The larger scopes belong to `npm run model`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readReport } from './pan.ts'
import { runSpin } from './run.ts'

const EXHAUSTED = `State-vector 132 byte, depth reached 888, errors: 0
    67858 states, stored (293012 visited)
  1.2e+06 transitions (= visited+matched)
unreached in proctype member
	tenure.pml:9001, state 12, "seat[m] = 2"
	tenure.pml:9002, state 99, "-end-"
pan: elapsed time 1.32 seconds
`

test('spin: the smallest scope holds, and its mutants do not', async (t) => {
  const { passed, results } = await runSpin({
    scope: 'smallest',
    print: (line) => t.diagnostic(line),
  })
  assert.ok(passed)
  assert.ok(results.some(({ configuration }) => configuration.startsWith('mutant')))
})

test('spin: a report is read', () => {
  const report = readReport(EXHAUSTED, 'L3')
  assert.deepEqual(
    { ...report, unreached: [...report.unreached] },
    {
      states: 67858,
      visited: 293012,
      transitions: 1_200_000,
      depth: 888,
      seconds: 1.32,
      hasCycle: false,
      unreached: [9001],
    },
  )
  const cycle = EXHAUSTED.replace('errors: 0', 'errors: 1')
  assert.ok(readReport(`pan:1: acceptance cycle (at depth 12)\n${cycle}`, 'L3').hasCycle)
})

test('spin: a search that was not exhausted, and a model that is wrong, are errors', () => {
  const shallow = `error: max search depth too small\n${EXHAUSTED}`
  assert.throws(() => readReport(shallow, 'L3'), /not exhausted, deeper/)
  assert.throws(() => readReport(`pan: reached -DMEMLIM bound\n${EXHAUSTED}`, 'L3'), /MiB/)
  assert.throws(() => readReport('', 'L3'), /gave no report/)
  const wrong = `pan:1: assertion violated\n${EXHAUSTED.replace('errors: 0', 'errors: 1')}`
  assert.throws(() => readReport(wrong, 'L3'), /the model itself is wrong/)
})
