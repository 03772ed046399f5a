/** Plan: the demo's report over a sound run, repeated often enough to pass, then with violations in it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportOf, type TurmoilLine } from '../../src/dev/report.ts'
import type { AcceptLine } from '../../src/evidence/accept-log.ts'
import type { HistoryEvent } from '../../src/evidence/history-log.ts'
import { effect, type Run, soundRun, token } from './evidence-world.ts'

const RUNS = 20

/** The sound run in each of several partitions. */
function manyRuns(plant: (run: Run) => void = () => {}) {
  const history: HistoryEvent[] = []
  const ledger: AcceptLine[] = []
  const published: { input: string; key: string; partition: number; sequence: number }[] = []
  for (let partition = 0; partition < RUNS; partition += 1) {
    const run = soundRun()
    if (partition === 3) plant(run)
    for (const event of run.history) {
      if (event.type === 'record') history.push({ ...event, partition })
      else if (partition === 0) history.push(event)
    }
    for (const line of run.accepts) {
      const named = { ...line.token, partition }
      if (line.type === 'sealed') ledger.push({ ...line, token: named })
      else ledger.push({ ...line, token: named, input: line.input && `${partition} ${line.input}` })
    }
    run.inputs.forEach((input, index) => {
      published.push({ input: `${partition} ${input}`, key: 'k', partition, sequence: index + 1 })
    })
  }
  history.sort((a, b) => a.revision - b.revision)
  const turmoil: TurmoilLine[] = [
    { type: 'kill', member: 'b', atMs: 700 },
    { type: 'kill', member: 'b', atMs: 701 },
    { type: 'pause', member: 'a', atMs: 702, forMs: 5000, beyondTtl: true },
    { type: 'pause', member: 'a', atMs: 702, forMs: 5000, beyondTtl: true },
    { type: 'pause', member: 'a', atMs: 703, forMs: 10, beyondTtl: false },
  ]
  return { published, ledger, turmoil, history: { events: history, missing: [], timed: true } }
}

test('a sound run that was hard enough, reported, has no failure and the documented fields', () => {
  const { ownerlessMs, failures, ...numbers } = reportOf(manyRuns())
  assert.deepEqual(failures, [])
  assert.deepEqual(numbers, {
    ...{ published: 5 * RUNS, applied: 5 * RUNS, lost: 0, duplicated: 0 },
    ...{ staleAccepted: 0, staleRefused: RUNS },
    ...{ moves: RUNS, movesWithWorkInFlight: RUNS, kills: 2, pauses: 2, overlapMs: 0 },
  })
  assert.deepEqual(ownerlessMs, { p50: 100, p99: 100, max: 100 })
})

type Field = 'lost' | 'duplicated' | 'staleAccepted' | 'overlapMs'

const PLANTED: readonly (readonly [Field, number, (run: Run) => void])[] = [
  ['lost', 1, ({ accepts }) => void accepts.pop()],
  ['duplicated', 1, ({ accepts }) => void accepts.push(effect(token(3, 'a'), 'i-4', 940, 950))],
  ['staleAccepted', 1, ({ accepts }) => void accepts.push(effect(token(2, 'b'), null, 940, 950))],
  ['staleAccepted', 1, ({ accepts }) => void accepts.push(effect(token(9, 'c'), null, 940, 950))],
  [
    'overlapMs',
    5,
    ({ accepts }) => void accepts.splice(3, 0, effect(token(1, 'a'), null, 200, 225)),
  ],
]

for (const [field, value, plant] of PLANTED) {
  test(`a run with ${field} planted, reported, fails naming the field and the violation`, () => {
    const report = reportOf(manyRuns(plant))
    assert.equal(report[field], value)
    assert.equal(report.failures[0], `${field} is ${value}, must be 0`)
    assert.ok(
      report.failures.some((failure) => /^S\d+ .*: /.test(failure)),
      'names the violation',
    )
  })
}

test('a run with too little trouble, reported, fails although nothing is wrong', () => {
  const { failures } = reportOf({ ...manyRuns(), turmoil: [] })
  assert.deepEqual(failures, [
    'kills is 0, the run needs at least 2',
    'pauses is 0, the run needs at least 2',
  ])
})

test('a run whose history has a gap, reported, fails saying that nothing can be concluded', () => {
  const run = manyRuns()
  const { failures } = reportOf({ ...run, history: { ...run.history, missing: ['compacted'] } })
  assert.deepEqual(failures, ['nothing can be concluded: compacted'])
})
