/** Plan: what a handler returns is judged, in each mode, on a real nats-server; and on scheduled jobs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionedConsumer } from '../../src/composition/work.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { createVirtualClock } from '../../src/testing/virtual-clock.ts'
import { createScheduledJobs } from '../../src/work/schedule.ts'
import { eventually } from '../support/eventually.ts'
import { FencedBook } from './fenced-book.ts'
import { serve } from './hand-grant.ts'
import { PREFIX, startStreamsWorld } from './streams-world.ts'

const SOON = { timeoutMs: 20_000 }
const HIGHEST = { incarnation: 1, generation: 9, session: '0000000000000009' }
const REFUSED = { ok: false, reason: 'stale', highest: HIGHEST } as const
const POSITION = { incarnation: 1, generation: 9 }

test('durable: a handler that returns a refusal has done nothing, so the next owner gets the message', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: [number, number][] = []
  const handlers = partitionedConsumer({
    mode: 'durable',
    ...{ streams: world.streams, prefix: PREFIX },
    handle: ({ message, token }) => {
      handled.push([token.generation, message.sequence])
      return token.generation === 1 ? REFUSED : { ok: true }
    },
  })
  await world.publish(['a'], 2)
  const first = await serve(handlers, 0, 1)
  await eventually(() => handled.length === 1, { ...SOON, what: 'the first message' })
  first.lose()
  assert.equal(await first.ended, null)
  assert.deepEqual(
    first.grant.refusals.map(({ incarnation, generation }) => ({ incarnation, generation })),
    [POSITION],
  )
  const second = await serve(handlers, 0, 2)
  await eventually(() => handled.length === 3, { ...SOON, what: 'both messages' })
  await second.handOver()
  assert.deepEqual(handled, [
    [1, 1],
    [2, 1],
    [2, 2],
  ])
})

test('checkpoint: a handler that returns a refusal has done nothing, and nothing later is taken up', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  const handled: number[] = []
  const handlers = partitionedConsumer({
    ...{ streams: world.streams, prefix: PREFIX },
    seal: (token) => book.seal(token),
    checkpoint: { load: (token) => book.checkpoint(token.partition) },
    handle: ({ message }) => {
      handled.push(message.sequence)
      return REFUSED
    },
  })
  await world.publish(['a', 'b'], 4)
  const served = await serve(handlers, 0, 1)
  // Nobody else has taken over, so the refusal is no late write, and is told.
  assert.ok(isTenureError(await served.ended, 'fence-refused'))
  assert.deepEqual(handled, [1])
})

test('durable: a handler that returns an answer that is not ok has failed, and is asked again', async (t) => {
  const world = await startStreamsWorld(t)
  const attempts: number[] = []
  const failures: string[] = []
  const handlers = partitionedConsumer({
    mode: 'durable',
    ...{ streams: world.streams, prefix: PREFIX, backOff: { firstMs: 5 } },
    onFailure: ({ error }) => failures.push(String(error)),
    handle: ({ attempt }) => {
      attempts.push(attempt)
      return new Response('', { status: attempt < 3 ? 503 : 200 })
    },
  })
  await world.publish(['a'], 1)
  const served = await serve(handlers, 0, 1)
  await eventually(() => attempts.length === 3, { ...SOON, what: 'three attempts' })
  await served.handOver()
  assert.deepEqual(attempts, [1, 2, 3])
  assert.match(failures.join(), /outcome is not ok/)
})

test('scheduled jobs: a run that returns a refusal has not run, and is told', async () => {
  const clock = createVirtualClock()
  let runs = 0
  const handlers = createScheduledJobs(
    {
      partitions: 1,
      seal: () => {},
      load: () => [{ key: 'a', lastDueMs: null }],
      nextDueMs: (_job, afterMs) => (afterMs === null ? clock.wallMs() : null),
      run: () => {
        runs += 1
        return REFUSED
      },
    },
    clock,
  )
  const served = await serve(handlers, 0, 1)
  await clock.advance(5000)
  assert.ok(isTenureError(await served.ended, 'fence-refused'))
  assert.equal(runs, 1)
  assert.equal(served.grant.refusals.length, 1)
})
