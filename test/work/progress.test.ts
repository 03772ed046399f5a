/** Plan: progress, lanes, due times and subjects on their own; random orders of settling against a plain model. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { everyInterval, nextRun } from '../../src/work/due.ts'
import { Lanes } from '../../src/work/lanes.ts'
import { Progress } from '../../src/work/progress.ts'
import { keyOfSubject, workSubjects } from '../../src/work/subjects.ts'

test('progress: settled in any order, it is always the highest settled below every open one', () => {
  const order = fc.shuffledSubarray([3, 4, 8, 9, 12, 20, 21], { minLength: 7 })
  fc.assert(
    fc.property(order, (settling) => {
      const progress = new Progress(2)
      const sequences = [...settling].sort((a, b) => a - b)
      for (const sequence of sequences) assert.ok(progress.take(sequence))
      const settled = new Set<number>()
      for (const sequence of settling) {
        settled.add(sequence)
        const firstOpen = sequences.find((one) => !settled.has(one)) ?? Number.POSITIVE_INFINITY
        const expected = Math.max(2, ...[...settled].filter((one) => one < firstOpen))
        assert.equal(progress.reach(sequence), expected)
        progress.settle(sequence)
        assert.equal(progress.through, expected)
      }
    }),
  )
})

test('progress: abandoned, what was open is taken again and what was settled above it is not', () => {
  const progress = new Progress(0)
  for (const sequence of [1, 2, 3]) progress.take(sequence)
  progress.settle(1)
  progress.settle(3)
  progress.abandon()
  assert.deepEqual(
    [1, 2, 3, 4].map((sequence) => progress.take(sequence)),
    [false, true, false, true],
  )
  assert.equal(progress.reach(2), 3)
})

test('lanes: a failure drops what has not begun, and tells each of it', async () => {
  const said: string[] = []
  let fail = () => {}
  const failing = new Promise<void>((_, reject) => {
    fail = () => reject(new Error('broken'))
  })
  const lanes = new Lanes({ runningMax: 2, heldMax: 3, onFailure: () => said.push('failure') })
  const run = (name: string) => async () => void said.push(`ran ${name}`)
  const drop = (name: string) => () => void said.push(`dropped ${name}`)
  lanes.add('a', () => failing)
  lanes.add('a', run('a2'), drop('a2'))
  lanes.add('b', run('b1'), drop('b1'))
  let hasRoom = false
  const room = lanes.room().then(() => {
    hasRoom = true
  })
  assert.equal(hasRoom, false)
  await room
  fail()
  await lanes.idle()
  lanes.add('c', run('c1'), drop('c1'))
  assert.deepEqual(said, ['ran b1', 'dropped a2', 'failure', 'dropped c1'])
  assert.match(String(lanes.failure?.error), /broken/)
})

test('due: missed times are run each, or the latest alone; a plan that stands still ends', () => {
  const plan = everyInterval({ everyMs: 100, offsetMs: 30, fromMs: 1000 })
  assert.equal(plan(null), 1030)
  assert.equal(plan(1030), 1130)
  assert.equal(plan(1131), 1230)
  assert.equal(plan(5), 1030)
  assert.equal(nextRun(null, plan, 'each', 1400), 1030)
  assert.equal(nextRun(1030, plan, 'each', 1400), 1130)
  assert.equal(nextRun(1030, plan, 'latest', 1400), 1330)
  assert.equal(nextRun(1330, plan, 'latest', 1400), 1430)
  assert.equal(
    nextRun(1330, () => 1330, 'each', 1400),
    null,
  )
  assert.equal(
    nextRun(null, () => null, 'latest', 1400),
    null,
  )
})

test('subjects: any key travels in one token and comes back; a prefix that is no subject is refused', () => {
  const { message, stream, deadSubject, partition } = workSubjects('shop.orders')
  assert.deepEqual(
    [stream, deadSubject, partition(3)],
    ['shop_orders', 'shop.orders.dead', 'shop.orders.3.*'],
  )
  fc.assert(
    fc.property(fc.string(), (key) => {
      assert.equal(keyOfSubject(message(3, key)), key)
    }),
  )
  for (const prefix of ['', 'a b', 'a.*', 'a.', '>', 'a..b']) {
    assert.throws(
      () => workSubjects(prefix),
      (error) => isTenureError(error, 'invalid-argument'),
    )
  }
})
