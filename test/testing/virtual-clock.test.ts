import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { createVirtualClock } from '../../src/testing/index.ts'

test('timers fire by time and then by the order of scheduling, whatever order they were made in', async () => {
  const clock = createVirtualClock()
  const fired: string[] = []
  for (const [delayMs, name] of [
    [30, 'c'],
    [10, 'a'],
    [20, 'b1'],
    [20, 'b2'],
    [0, 'now'],
    [40, 'too late'],
  ] as const) {
    clock.schedule(delayMs, () => fired.push(`${name}@${clock.monotonicMs()}`))
  }
  await clock.advance(35)
  assert.deepEqual(fired, ['now@0', 'a@10', 'b1@20', 'b2@20', 'c@30'])
  assert.equal(clock.monotonicMs(), 35)
})

test('a thousand timers at random times fire in order, the cancelled ones not at all', async () => {
  const clock = createVirtualClock()
  const fired: number[] = []
  const timers = Array.from({ length: 1_000 }, (_, index) => (index * 7_919) % 1_009).map(
    (atMs) => ({
      atMs,
      timer: clock.schedule(atMs, () => fired.push(atMs)),
    }),
  )
  for (const { atMs, timer } of timers) if (atMs % 3 === 0) timer.cancel()
  await clock.advance(2_000)
  const expected = timers.map(({ atMs }) => atMs).filter((atMs) => atMs % 3 !== 0)
  assert.deepEqual(
    fired,
    expected.sort((one, other) => one - other),
  )
})

test('promises settle between two timers, also through many steps', async () => {
  const clock = createVirtualClock()
  const log: string[] = []
  const chain = async (name: string) => {
    for (let step = 0; step < 20; step += 1) await Promise.resolve()
    log.push(name)
  }
  clock.schedule(5, () => void chain('first'))
  clock.schedule(5, () => log.push('second'))
  await clock.advance(5)
  assert.deepEqual(log, ['first', 'second'])
})

test('a timer set by a promise of an earlier timer fires in its place', async () => {
  const clock = createVirtualClock()
  const log: string[] = []
  clock.schedule(
    10,
    () => void Promise.resolve().then(() => clock.schedule(5, () => log.push('15'))),
  )
  clock.schedule(20, () => log.push('20'))
  await clock.advance(20)
  assert.deepEqual(log, ['15', '20'])
})

test('runUntil stops at the first step where the condition holds, or at its limit', async () => {
  const clock = createVirtualClock()
  let count = 0
  const tick = () => {
    count += 1
    clock.schedule(10, tick)
  }
  clock.schedule(10, tick)
  assert.equal(await clock.runUntil(() => count === 3, { limitMs: 1_000 }), true)
  assert.equal(clock.monotonicMs(), 30)
  assert.equal(await clock.runUntil(() => count === 1_000, { limitMs: 100 }), false)
  assert.deepEqual([clock.monotonicMs(), count], [130, 13])
})

test('run hands a value and a rejection on, and gives up at its limit', async () => {
  const clock = createVirtualClock()
  const later = (
    callback: (resolve: (value: string) => void, reject: (error: Error) => void) => void,
  ) => new Promise<string>((resolve, reject) => clock.schedule(10, () => callback(resolve, reject)))
  assert.equal(await clock.run(later((resolve) => resolve('value'))), 'value')
  await assert.rejects(clock.run(later((_, reject) => reject(new Error('broken')))), /broken/)
  const never = clock.run(new Promise(() => {}), { limitMs: 50 })
  await assert.rejects(never, (error) => isTenureError(error, 'timed-out'))
})

test('running a clock that is being run is refused', async () => {
  const clock = createVirtualClock()
  const first = clock.advance(10)
  await assert.rejects(clock.advance(10), (error) => isTenureError(error, 'invalid-argument'))
  await first
})

test('a jump of the wall clock moves no timer and no monotonic time', async () => {
  const clock = createVirtualClock({ startWallMs: 1_000_000 })
  const process = clock.createProcess()
  let firedAtMs = 0
  clock.schedule(100, () => {
    firedAtMs = clock.monotonicMs()
  })
  clock.jumpWall(-500_000)
  process.jumpWall(250)
  await clock.advance(100)
  assert.deepEqual([firedAtMs, clock.monotonicMs(), process.monotonicMs()], [100, 100, 100])
  assert.deepEqual([clock.wallMs(), process.wallMs()], [500_100, 500_350])
})

test('a paused process hears nothing, and everything in order once it runs again', async () => {
  const clock = createVirtualClock()
  const [paused, other] = [clock.createProcess(), clock.createProcess()]
  const log: string[] = []
  const cancelled = paused.schedule(15, () => log.push('cancelled'))
  for (const atMs of [20, 10, 30]) paused.schedule(atMs, () => log.push(`paused ${atMs}`))
  other.schedule(20, () => log.push('other 20'))
  paused.pause()
  await clock.advance(25)
  assert.deepEqual(log, ['other 20'])
  cancelled.cancel()
  paused.resume()
  await clock.advance(0)
  assert.deepEqual(log, ['other 20', 'paused 10', 'paused 20'])
  await clock.advance(5)
  assert.equal(log.at(-1), 'paused 30')
})

test('a killed process never hears anything again, resumed or not', async () => {
  const clock = createVirtualClock()
  const process = clock.createProcess()
  let fired = 0
  const count = () => {
    fired += 1
  }
  process.schedule(10, count)
  process.pause()
  await clock.advance(20)
  process.kill()
  process.resume()
  process.schedule(10, count)
  await clock.advance(100)
  assert.equal(fired, 0)
})
