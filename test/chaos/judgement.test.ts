/**
 * Plan: a sound run passes; one thing at a time is broken in it, and is named with its promise and its
 * partition. What the stream lost is not held against the workers. A machine that stalls voids liveness
 * alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/testing/seeded-random.ts'
import { effect, soundRun, token } from '../evidence/evidence-world.ts'
import type { FaultLine } from './faults.ts'
import { judgeRun, type RunEvidence } from './judgement.ts'
import type { PublishedOrder } from './producer-program.ts'
import { makeReport, reportLines } from './report.ts'
import type { RefusedLine } from './worker-program.ts'

const RUN_MS = 60_000
const LINES_MAX = 30

function faultAt(fromMs: number, of: Partial<FaultLine> = {}): FaultLine {
  return {
    ...{ kind: 'nats-restart', class: 'nats', targets: ['nats-1'], fromMs, toMs: fromMs + 10 },
    ...{ over: 0, failure: null },
    ...of,
  }
}

/** Enough happened, nothing broke. */
function soundEvidence(of: Partial<RunEvidence> = {}): RunEvidence {
  const { history, accepts, inputs } = soundRun()
  const refused = accepts.filter((line) => line.type === 'effect' && line.outcome === 'refused')
  return {
    ...{ fromMs: 0, toMs: RUN_MS, ...publishedAs(inputs) },
    accepts: accepts.filter((line) => !refused.includes(line)),
    refused: refused.map((line) => ({ ...line, reason: 'stale' }) as RefusedLine),
    effects: [],
    history: { events: history, missing: [], timed: true },
    faults: Array.from({ length: 14 }, (_, index) => faultAt(20_000 + index)),
    ...{ leaderChangesMs: [], settled: [], machine: [], ends: [] },
    ...of,
  }
}

/** Each on its own place in the stream, and still there. */
function publishedAs(inputs: readonly string[]): Pick<RunEvidence, 'published' | 'stored'> {
  const published = inputs.map(
    (input, index): PublishedOrder => ({ input, key: 'k', partition: 0, sequence: index + 1 }),
  )
  return { published, stored: new Map(published.map((one) => [one.sequence, one.input])) }
}

const INPUTS = soundRun().inputs

function failuresOf(of: Partial<RunEvidence>): readonly string[] {
  return judgeRun(soundEvidence(of)).failures.map(({ promise }) => promise)
}

test('a sound run passes', () => {
  const { verdict, failures } = judgeRun(soundEvidence())
  assert.deepEqual({ verdict, failures }, { verdict: 'passed', failures: [] })
})

test('a lost input breaks S11, unless the stream itself lost it', () => {
  const lost = publishedAs([...INPUTS, 'i-9'])
  assert.deepEqual(failuresOf(lost), ['S11'])
  const forgotten = judgeRun(soundEvidence({ ...lost, stored: publishedAs(INPUTS).stored }))
  assert.deepEqual([forgotten.verdict, forgotten.counts.lostByStream], ['passed', 1])
  // The stream went back, and gave i-9 a number below what the partition had applied.
  const applied = lost.published.slice(0, INPUTS.length)
  const gone = { input: 'i-8', key: 'k', partition: 0, sequence: INPUTS.length + 2 }
  const behind = judgeRun(soundEvidence({ ...lost, effects: [...applied, gone] }))
  assert.deepEqual([behind.verdict, behind.counts.lostByStream], ['passed', 1])
  const elsewhere = { ...gone, partition: 1 }
  assert.deepEqual(failuresOf({ ...lost, effects: [...applied, elsewhere] }), ['S11'])
})

test('a stale write that was accepted breaks S3, and the partition is named', () => {
  const { accepts } = soundEvidence()
  const stale = effect(token(2, 'b'), 'i-7', 940, 950)
  const { failures } = judgeRun(soundEvidence({ accepts: [...accepts, stale] }))
  assert.deepEqual(
    failures.map(({ promise, partition }) => ({ promise, partition })),
    [{ promise: 'S3', partition: 0 }],
  )
})

test('an effect before its seal breaks S7', () => {
  const { refused } = soundEvidence()
  const unsealed = { ...(refused[0] as RefusedLine), reason: 'unsealed' as const }
  assert.deepEqual(failuresOf({ refused: [...refused, unsealed] }), ['S7'])
})

test('effects of a key out of their order are named', () => {
  const at = (sequence: number) => ({ input: `o-${sequence}`, key: 'k', sequence, partition: 3 })
  assert.deepEqual(failuresOf({ effects: [at(1), at(4), at(2)] }), ['order'])
})

test('a history with a gap concludes nothing', () => {
  const { history } = soundEvidence()
  const missing = ['revisions 3 to 9']
  assert.deepEqual(failuresOf({ history: { ...history, missing } }), ['evidence'])
})

test('a process that ended by itself, and a fault that could not be done, are failures', () => {
  assert.deepEqual(failuresOf({ ends: [{ node: 'w-1', code: 1, atMs: 5 }] }), ['process'])
  const { faults } = soundEvidence()
  const failed = faultAt(30_000, { failure: 'no such program' })
  assert.deepEqual(failuresOf({ faults: [...faults, failed] }), ['harness'])
})

test('few faults, or no stale write, show nothing', () => {
  assert.deepEqual(failuresOf({ faults: [faultAt(20_000)] }), ['vacuous'])
  assert.deepEqual(failuresOf({ refused: [] }), ['vacuous'])
})

/** b is killed at 700 and a seals 210 ms later, or never. */
function killed(of: Partial<RunEvidence> = {}) {
  const kill = faultAt(700, { kind: 'worker-kill', class: 'worker', targets: ['b'] })
  return soundEvidence({ faults: [...soundEvidence().faults, kill], ...of })
}

test('a take-over has its time, and one that never comes breaks L1', () => {
  const { measures } = judgeRun(killed())
  const [measure] = measures.filter(({ promise }) => promise === 'L1')
  assert.equal(measure?.tookMs, 210)
  assert.equal(measure?.verdict, 'held')
  const { accepts, history } = soundEvidence()
  const events = [
    ...history.events,
    { type: 'session-began', atMs: 50_000, revision: 90, member: 'c', session: 'c'.repeat(16) },
  ] as RunEvidence['history']['events']
  const never = judgeRun(
    killed({
      accepts: accepts.slice(0, -2),
      history: { ...history, events },
    }),
  )
  assert.ok(never.failures.some(({ promise, partition }) => promise === 'L1' && partition === 0))
})

test('a take-over may wait for a candidate that is dead too', () => {
  const { accepts, history, faults } = killed()
  const gone = (member: string, atMs: number, revision: number) =>
    ({ type: 'session-gone', atMs, revision, member }) as RunEvidence['history']['events'][number]
  const later = accepts.map((line) =>
    line.type === 'sealed' && line.atMs === 910 ? { ...line, atMs: 6300 } : line,
  )
  const verdictOf = (others: readonly FaultLine[]) => {
    const kept = history.events.filter(({ type }) => type !== 'session-gone')
    const events = [...kept, gone('b', 4600, 91), gone('c', 6200, 92)]
    const evidence = killed({ faults: [...faults, ...others], accepts: later })
    const { measures } = judgeRun({ ...evidence, history: { ...history, events } })
    const measure = measures.find(({ promise }) => promise === 'L1')
    return [measure?.tookMs, measure?.isClean, measure?.verdict]
  }
  const kill = { kind: 'worker-kill', class: 'worker', targets: ['c'] } as const
  assert.deepEqual(verdictOf([faultAt(2000, kill)]), [5600, false, 'held'])
  assert.deepEqual(verdictOf([]), [5600, true, 'broken'])
  // One that was healed a session before it mattered is no excuse.
  assert.deepEqual(verdictOf([faultAt(10, kill)]), [5600, true, 'broken'])
})

test('a machine that stalls voids a bound, and too much of it the run', () => {
  const settled = [{ fromMs: 30_000, tookMs: 20_000, last: 'settled' }]
  assert.deepEqual(failuresOf({ settled }), ['L4'])
  const stall = (fromMs: number) => ({ type: 'stall', fromMs, toMs: fromMs + 450 }) as const
  const machine = [stall(35_000), stall(40_000)]
  const [once] = machine
  assert.deepEqual(failuresOf({ settled, machine: once === undefined ? [] : [once] }), ['L4'])
  const long = {
    ...{ settled, machine, toMs: 5 * RUN_MS },
    faults: Array.from({ length: 70 }, (_, index) => faultAt(20_000 + index)),
  }
  const voided = judgeRun(soundEvidence(long))
  assert.deepEqual([voided.verdict, voided.counts.voided], ['passed', 1])
  const tooBusy = judgeRun(soundEvidence({ settled, machine }))
  assert.equal(tooBusy.verdict, 'machine-too-busy')
  const starved = judgeRun(soundEvidence({ settled, machine, faults: [faultAt(20_000)] }))
  assert.equal(starved.verdict, 'machine-too-busy')
  const lost = publishedAs([...INPUTS, 'i-9'])
  assert.equal(judgeRun(soundEvidence({ ...lost, settled, machine })).verdict, 'failed')
})

test('the report fits a terminal, however much failed', () => {
  const random = createSeededRandom(5)
  const ends = Array.from({ length: 40 }, (_, code) => ({ node: 'w-1', code, atMs: 20_000 }))
  const faults = Array.from({ length: 60 }, () => faultAt(19_000 + random.integer(900)))
  const lines = reportLines(
    makeReport({
      ...{ judgement: judgeRun(soundEvidence({ ends, faults })), faults, fromMs: 0 },
      options: { minutes: 1, seed: 5, reportFile: null, skipIfImpossible: false, keep: false },
      ...{ operators: {}, commit: 'abc', versions: {}, wallClockDriftMs: 0 },
    }),
  )
  // The line at the start and the one that names the folder belong to it.
  assert.ok(lines.length + 2 <= LINES_MAX, `${lines.length} lines`)
  assert.ok(lines.some((line) => line.includes('w-1 ended by itself with 0')))
})
