import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSystemClock } from '../../src/host/system-clock.ts'
import { createSystemRandom } from '../../src/host/system-random.ts'
import { eventually } from '../support/eventually.ts'

function machine() {
  const now = {
    performanceMs: 1000,
    bootMs: 500_000,
    wallMs: 1_700_000_000_000,
    reads: 0,
    stallMs: 0,
  }
  const clock = createSystemClock({
    performanceMs: () => now.performanceMs,
    bootMs() {
      now.reads += 1
      now.performanceMs += now.stallMs
      const bootMs = now.bootMs
      now.bootMs += now.stallMs
      return Math.floor(bootMs / 10) * 10
    },
    wallMs: () => now.wallMs,
  })
  const pass = (ms: number) => {
    now.performanceMs += ms
    now.bootMs += ms
    now.wallMs += ms
  }
  return { now, clock, pass }
}

test('without a suspend, monotonic time is performance time, whatever the wall clock does', () => {
  const { now, clock, pass } = machine()
  for (let step = 0; step < 10_000; step++) {
    pass(step % 300)
    now.wallMs += step % 2 === 0 ? 3_600_000 : -3_600_000
    assert.equal(clock.monotonicMs(), now.performanceMs)
  }
})

test('a suspend that performance time missed counts once and for good', () => {
  const { now, clock, pass } = machine()
  pass(150)
  clock.monotonicMs()
  now.bootMs += 60_000
  pass(100)
  assert.equal(Math.round((clock.monotonicMs() - now.performanceMs) / 100), 600)
  pass(10_000)
  assert.equal(Math.round((clock.monotonicMs() - now.performanceMs) / 100), 600)
  now.bootMs += 5_000
  pass(100)
  assert.equal(Math.round((clock.monotonicMs() - now.performanceMs) / 100), 650)
})

test('a boot time that falls behind is never subtracted', () => {
  const { now, clock, pass } = machine()
  pass(150)
  clock.monotonicMs()
  now.bootMs -= 60_000
  pass(100)
  assert.equal(clock.monotonicMs(), now.performanceMs)
})

test('a process stopped between the two readings of a sample does not see a suspend', () => {
  const { now, clock, pass } = machine()
  pass(150)
  now.stallMs = 6000
  clock.monotonicMs()
  now.stallMs = 0
  pass(100)
  assert.equal(clock.monotonicMs(), now.performanceMs)
  pass(100)
  assert.equal(clock.monotonicMs(), now.performanceMs)
})

test('boot time is read at most once per 100 ms of use', () => {
  const { now, clock, pass } = machine()
  const before = now.reads
  for (let step = 0; step < 10_000; step++) {
    pass(1)
    clock.monotonicMs()
  }
  assert.ok(now.reads - before <= 100)
  assert.ok(now.reads - before >= 99)
})

test('a timer of the real clock fires once, not early, and a cancelled one never', async () => {
  const clock = createSystemClock()
  const fired: number[] = []
  let cancelledFired = false
  const dueMs = clock.monotonicMs() + 30.4
  clock
    .schedule(10, () => {
      cancelledFired = true
    })
    .cancel()
  clock.schedule(30.4, () => fired.push(clock.monotonicMs()))
  await eventually(() => fired.length > 0, { timeoutMs: 3000, what: 'the timer fired' })
  assert.equal(fired.length, 1)
  assert.ok((fired[0] ?? 0) >= dueMs)
  assert.equal(cancelledFired, false)
})

test('random ids are well-formed and do not repeat, fractions stay below 1', () => {
  const random = createSystemRandom()
  const sessions = Array.from({ length: 1000 }, () => random.sessionId())
  assert.equal(new Set(sessions).size, 1000)
  assert.ok(sessions.every((session) => /^[0-7][0-9a-f]{15}$/.test(session)))
  const operations = Array.from({ length: 1000 }, () => random.operationId())
  assert.equal(new Set(operations).size, 1000)
  assert.ok(operations.every((operation) => /^[0-9a-f]{16}$/.test(operation)))
  const fractions = Array.from({ length: 1000 }, () => random.fraction())
  assert.ok(fractions.every((fraction) => fraction >= 0 && fraction < 1))
  assert.ok(Math.max(...fractions) > 0.9 && Math.min(...fractions) < 0.1)
})
