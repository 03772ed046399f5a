/** Plan: the durable mode on a real nats-server, under grants that the test makes and ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DurableConsumerOptions, partitionedConsumer } from '../../src/composition/work.ts'
import { eventually } from '../support/eventually.ts'
import { serve } from './hand-grant.ts'
import { PREFIX, type StreamsWorld, startStreamsWorld } from './streams-world.ts'

const SOON = { timeoutMs: 20_000 }
const LONG_ACK_WAIT_MS = 60_000

type Handled = { readonly key: string; readonly sequence: number; readonly generation: number }

function consumerOf(
  { streams }: StreamsWorld,
  handled: Handled[],
  options: Partial<DurableConsumerOptions> = {},
) {
  return partitionedConsumer({
    mode: 'durable',
    streams,
    prefix: PREFIX,
    handle: ({ message: { key, sequence }, token: { generation } }) => {
      handled.push({ key, sequence, generation })
    },
    backOff: { firstMs: 5, maxMs: 20 },
    ...options,
  })
}

function deferred() {
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  return { held, letGo: () => letGo() }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

test('durable: drained owners hand over at once, however long the ack wait, and nothing comes twice', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: Handled[] = []
  const handlers = consumerOf(world, handled, { ackWaitMs: LONG_ACK_WAIT_MS })
  await world.publish(['a', 'b', 'c'], 60)
  for (let generation = 1; generation <= 10; generation += 1) {
    const served = await serve(handlers, 0, generation)
    const wanted = generation * 6
    await eventually(() => handled.length >= wanted, { ...SOON, what: `${wanted} handled` })
    await served.handOver()
  }
  const last = await serve(handlers, 0, 11)
  await eventually(() => handled.length === 60, { ...SOON, what: 'all' })
  // One more shows that none of the others is still to come again.
  await world.publish(['a'], 1)
  await eventually(() => handled.length >= 61, { ...SOON, what: 'one more' })
  await last.handOver()
  assert.deepEqual(
    handled.map(({ sequence }) => sequence),
    range(1, 61),
  )
})

test('durable: an owner lost in the midst of a message, the next gets it, before all later ones', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: Handled[] = []
  const { held, letGo } = deferred()
  const handlers = consumerOf(world, handled, {
    ackWaitMs: 1000,
    handle: async ({ message: { key, sequence }, token: { generation } }) => {
      handled.push({ key, sequence, generation })
      if (generation === 1 && sequence === 3) await held
    },
  })
  await world.publish(['a'], 8)
  const first = await serve(handlers, 0, 1)
  await eventually(() => handled.length === 3, { ...SOON, what: 'the third message' })
  first.lose()
  const second = await serve(handlers, 0, 2)
  // The old owner's process lives on and keeps its message until it settles: then it is not acknowledged.
  letGo()
  await eventually(() => handled.at(-1)?.sequence === 8, { ...SOON, what: 'the last message' })
  await second.handOver()
  const bySecond = handled.filter(({ generation }) => generation === 2)
  const sequences = bySecond.map(({ sequence }) => sequence)
  assert.ok(sequences[0] === 3 || sequences[0] === 4, `began at ${sequences[0]}`)
  assert.deepEqual(sequences, range(sequences[0] ?? 0, 8))
})

test('durable: an owner that falls silent, its message comes again after the ack wait', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: number[] = []
  await world.publish(['a'], 2)
  const stop = new AbortController()
  const options = {
    ...{ stream: PREFIX, subject: `${PREFIX}.0.*`, consumer: 'work-0' },
    ...{ ackWaitMs: 1000, unacknowledgedMax: 1, signal: stop.signal },
  }
  // A process that was killed: it took the first message and says nothing more.
  for await (const delivery of world.streams.readDurable(options)) {
    assert.equal(delivery.sequence, 1)
    break
  }
  stop.abort()
  const attempts: number[] = []
  const handlers = consumerOf(world, [], {
    ackWaitMs: 1000,
    handle: ({ message, attempt }) => {
      handled.push(message.sequence)
      attempts.push(attempt)
    },
  })
  const served = await serve(handlers, 0, 2)
  await eventually(() => handled.length === 2, { ...SOON, what: 'both' })
  await served.handOver()
  assert.deepEqual({ handled, attempts }, { handled: [1, 2], attempts: [2, 1] })
})

test('durable: a handler that takes longer than the ack wait keeps its message', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: Handled[] = []
  const { held, letGo } = deferred()
  const handlers = consumerOf(world, handled, {
    ackWaitMs: 300,
    handle: async ({ message: { key, sequence }, token: { generation } }) => {
      handled.push({ key, sequence, generation })
      if (sequence === 1) await held
    },
  })
  await world.publish(['a'], 2)
  const served = await serve(handlers, 0, 1)
  const sinceMs = performance.now()
  await eventually(() => performance.now() - sinceMs > 1500, { ...SOON, what: 'five ack waits' })
  letGo()
  await eventually(() => handled.length >= 2, { ...SOON, what: 'the second message' })
  await served.handOver()
  assert.deepEqual(
    handled.map(({ sequence }) => sequence),
    [1, 2],
  )
})

test('durable: a message that fails each time becomes a dead letter; what earlier owners tried counts', async (t) => {
  const world = await startStreamsWorld(t)
  const attempts: number[] = []
  const handled: Handled[] = []
  const handlers = consumerOf(world, handled, {
    failuresMax: 4,
    ackWaitMs: LONG_ACK_WAIT_MS,
    backOff: { firstMs: 30_000 },
    handle: ({ message: { key, sequence }, token: { generation }, attempt }) => {
      if (key !== 'bad') {
        handled.push({ key, sequence, generation })
        return
      }
      attempts.push(attempt)
      throw new Error(`attempt ${attempt}`)
    },
  })
  await world.publish(['bad', 'good'], 2)
  // Each owner fails once and is drained during the wait that follows: it hands the message back.
  for (let generation = 1; generation <= 4; generation += 1) {
    const served = await serve(handlers, 0, generation)
    await eventually(() => attempts.length === generation, { ...SOON, what: 'an attempt' })
    if (generation === 4) await eventually(() => handled.length === 1, { ...SOON, what: 'good' })
    await served.handOver()
  }
  assert.deepEqual(attempts, [1, 2, 3, 4])
  const [letter] = await world.letters(1)
  assert.equal(letter?.reason, 'attempt 4')
  assert.equal(letter?.token.generation, 4)
  assert.equal(letter?.failures, 4)
})

test('durable: with several at once, keys overlap, one key does not, and no more is unacknowledged than the window', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: Handled[] = []
  const { held, letGo } = deferred()
  const running = new Set<string>()
  let most = 0
  const handlers = consumerOf(world, handled, {
    ...{ concurrency: 3, window: 6, ackWaitMs: 2000 },
    handle: async ({ message: { key, sequence }, token: { generation } }) => {
      assert.ok(!running.has(key), `${key} overlaps`)
      running.add(key)
      most = Math.max(most, running.size)
      await held
      handled.push({ key, sequence, generation })
      running.delete(key)
    },
  })
  await world.publish(['a', 'a', 'b', 'c'], 40)
  const served = await serve(handlers, 0, 1)
  await eventually(() => running.size === 3, { ...SOON, what: 'three at once' })
  letGo()
  await eventually(() => handled.length === 40, { ...SOON, what: 'all' })
  await served.handOver()
  assert.equal(most, 3)
  for (const key of ['a', 'b', 'c']) {
    const sequences = handled.filter((one) => one.key === key).map(({ sequence }) => sequence)
    assert.deepEqual(
      sequences,
      [...sequences].sort((x, y) => x - y),
    )
  }
})

test('durable: the server restarted under the consumer, every message is handled', async (t) => {
  const world = await startStreamsWorld(t)
  const handled: Handled[] = []
  await world.publish(['a', 'b'], 40)
  const served = await serve(consumerOf(world, handled, { ackWaitMs: 1000 }), 0, 1)
  await eventually(() => handled.length >= 5, { ...SOON, what: 'a start' })
  await world.nats.kill()
  await world.nats.restart()
  await world.publish(['a', 'b'], 20)
  await eventually(() => new Set(handled.map(({ sequence }) => sequence)).size === 60, {
    ...SOON,
    what: 'all',
  })
  await served.handOver()
})
