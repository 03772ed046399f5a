/** Plan: servers that are away or do not answer, under grants that the test makes and ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { partitionedConsumer } from '../../src/composition/work.ts'
import { createTenureError } from '../../src/core/tenure-error.ts'
import { findFreePorts } from '../../src/dev/servers-process.ts'
import { isOutage } from '../../src/work/outages.ts'
import { eventually } from '../support/eventually.ts'
import { FencedBook } from './fenced-book.ts'
import { serve } from './hand-grant.ts'
import { PREFIX, type StreamsWorld, startStreamsWorld } from './streams-world.ts'

const SOON = { timeoutMs: 20_000 }

function checkpointConsumer({ streams }: StreamsWorld, handle: () => void) {
  const book = new FencedBook()
  return partitionedConsumer({
    ...{ streams, prefix: PREFIX },
    seal: (token) => book.seal(token),
    checkpoint: { load: (token) => book.checkpoint(token.partition) },
    handle,
  })
}

for (const mode of ['checkpoint', 'durable'] as const) {
  test(`${mode}: a server that does not answer holds up no drain`, async (t) => {
    const world = await startStreamsWorld(t)
    const handlers =
      mode === 'checkpoint'
        ? checkpointConsumer(world, () => {})
        : partitionedConsumer({ mode, streams: world.streams, prefix: PREFIX, handle: () => {} })
    await world.publish(['a'], 1)
    world.nats.pause()
    t.after(() => world.nats.resume())
    const served = await serve(handlers, 0, 1)
    // Time for the reader to ask: the drain is to come while it waits.
    await delay(50)
    const beganAtMs = performance.now()
    await served.handOver()
    const tookMs = performance.now() - beganAtMs
    assert.equal(await served.ended, null)
    // The client gives a request up after 5 s.
    assert.ok(tookMs < 2000, `the drain took ${Math.round(tookMs)} ms`)
  })
}

test('a resource that is out of reach for more tries than make a dead letter, the message is handled when it is back', async (t) => {
  const world = await startStreamsWorld(t)
  const seen: number[] = []
  let letters = 0
  let isAway = true
  let handled = 0
  const [port = 0] = await findFreePorts(1)
  const handlers = partitionedConsumer({
    mode: 'durable',
    ...{ streams: world.streams, prefix: PREFIX, failuresMax: 2, backOff: { firstMs: 5 } },
    onFailure: ({ failures }) => seen.push(failures),
    onDeadLetter: () => {
      letters += 1
    },
    handle: async () => {
      if (isAway) await fetch(`http://127.0.0.1:${port}/`)
      handled += 1
    },
  })
  await world.publish(['a'], 1)
  const served = await serve(handlers, 0, 1)
  await eventually(() => seen.length >= 6, { ...SOON, what: 'six tries' })
  isAway = false
  await eventually(() => handled === 1, { ...SOON, what: 'handled' })
  await served.handOver()
  assert.equal(letters, 0)
  assert.deepEqual(new Set(seen), new Set([0]))
})

test('what is an outage: unreachable servers, however wrapped; nothing that a server answered', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  assert.ok(isOutage(refused))
  assert.ok(isOutage(new TypeError('fetch failed', { cause: refused })))
  assert.ok(isOutage(new Error('order 7', { cause: new TypeError('fetch', { cause: refused }) })))
  assert.ok(isOutage(createTenureError('store-unreachable', 'PostgreSQL')))
  assert.ok(!isOutage(createTenureError('conflict', 'lost 20 times', { cause: refused })))
  assert.ok(!isOutage(new Error('cannot be read')))
  assert.ok(!isOutage('ECONNREFUSED'))
})
