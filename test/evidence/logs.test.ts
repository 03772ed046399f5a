/** Plan: logs as files: what is read back, what is passed over, what is refused or is a gap; durations. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { historyLines } from '../../src/dev/history.ts'
import { parseAcceptLog, parseInputs } from '../../src/evidence/accept-log.ts'
import { distributionOf, histogramOf } from '../../src/evidence/distribution.ts'
import { parseHistory } from '../../src/evidence/history-log.ts'
import { verifyRun } from '../../src/evidence/verify.ts'
import { evidenceOf, soundRun } from './evidence-world.ts'

function lines(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('')
}

test('both logs written and read back, verified, prove what they proved before', () => {
  const run = soundRun()
  const history = { events: run.history, missing: [], timed: true }
  const turmoil = { type: 'kill', member: 'b', atMs: 700 }
  const found = verifyRun({
    accepts: parseAcceptLog(lines([...run.accepts, { type: 'opened' }]), 'accepts'),
    history: parseHistory(lines([...historyLines(history), turmoil]), 'history'),
    inputs: parseInputs(lines(run.inputs.map((input) => ({ input, key: 'k' }))), 'inputs'),
  })
  assert.deepEqual(found, verifyRun(evidenceOf(run)))
})

test('a record as it stands in etcd, read from a history, keeps fields this build does not know', () => {
  const [, , first] = soundRun().history
  assert.ok(first?.type === 'record')
  const { unknown: _, ...record } = first.record
  const line = { ...first, record: { v: 1, ...record, colour: 'red' } }
  const [event] = parseHistory(lines([line]), 'history').events
  assert.ok(event?.type === 'record')
  assert.deepEqual(event.record.unknown, { colour: 'red' })
})

test('an accept log, a torn last line is passed over and any other is refused by its number', () => {
  const { accepts } = soundRun()
  const text = lines(accepts)
  assert.equal(parseAcceptLog(`${text}{"type":"eff`, 'log').length, accepts.length)
  for (const broken of ['{"type":"eff\n', '{"type":"effect","token":{}}\n', '[]\n']) {
    assert.throws(
      () => parseAcceptLog(`${text}${broken}`, 'my.jsonl'),
      (error) =>
        isTenureError(error, 'invalid-argument') && error.message.startsWith('my.jsonl, line 10:'),
    )
  }
  assert.throws(() => parseInputs('{"order":"x"}\n', 'in.jsonl'), /in\.jsonl, line 1: no ack/)
})

test('a history with a gap line, or a line that cannot be read, is known to miss something', () => {
  const run = soundRun()
  const known = lines(run.history)
  assert.deepEqual(parseHistory(known, 'h').missing, [])
  const told = historyLines({ events: run.history, missing: ['compacted'] })
  assert.deepEqual(parseHistory(lines(told), 'h').missing, ['compacted'])
  for (const broken of ['{"type":"rec', '{"type":"record","revision":3,"atMs":1}', '7']) {
    assert.deepEqual(parseHistory(`${known}${broken}`, 'h').missing, ['h, line 8 cannot be read'])
  }
})

test('durations, distributed, show median, ninety-ninth hundredth, longest and a histogram', () => {
  assert.deepEqual(distributionOf([]), { p50: 0, p99: 0, max: 0 })
  const values = Array.from({ length: 100 }, (_, index) => index + 1)
  assert.deepEqual(distributionOf(values), { p50: 51, p99: 100, max: 100 })
  assert.deepEqual(histogramOf([]), [])
  assert.deepEqual(
    histogramOf([2, 9, 10, 100_000]).filter(({ count }) => count > 0),
    [
      { upToMs: 3, count: 1 },
      { upToMs: 10, count: 2 },
      { upToMs: null, count: 1 },
    ],
  )
  assert.deepEqual(histogramOf([0, 0]), [{ upToMs: 0, count: 2 }])
})
