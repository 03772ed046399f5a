/** Plan: the checkpoint mode on a real nats-server, under grants that the test makes and ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type CheckpointConsumerOptions,
  ensureWorkStreams,
  partitionedConsumer,
} from '../../src/composition/work.ts'
import { createTenureError, isTenureError } from '../../src/core/tenure-error.ts'
import { eventually } from '../support/eventually.ts'
import { FencedBook, sequencesByKey } from './fenced-book.ts'
import { serve } from './hand-grant.ts'
import { PREFIX, type StreamsWorld, startStreamsWorld } from './streams-world.ts'

const SOON = { timeoutMs: 20_000 }

function consumerOf(
  { streams }: StreamsWorld,
  book: FencedBook,
  options: Partial<CheckpointConsumerOptions> = {},
) {
  return partitionedConsumer({
    streams,
    prefix: PREFIX,
    seal: (token) => book.seal(token),
    checkpoint: {
      load: (token) => book.checkpoint(token.partition),
      save: (token, { sequence }) => book.save(token, sequence),
    },
    handle: async ({ message, token, checkpoint, idempotencyKey }) => {
      await delay(message.sequence % 3)
      const { key, sequence } = message
      book.commit(token, { key, sequence, idempotencyKey, checkpoint: checkpoint.sequence })
    },
    backOff: { firstMs: 5, maxMs: 20 },
    ...options,
  })
}

function assertRising(book: FencedBook): void {
  for (const [key, sequences] of sequencesByKey(book.entries)) {
    const sorted = [...sequences].sort((a, b) => a - b)
    assert.deepEqual(sequences, sorted, `${key} out of order`)
  }
}

function assertEachOnce(book: FencedBook, count: number): void {
  const sequences = book.entries.map(({ sequence }) => sequence).sort((a, b) => a - b)
  assert.deepEqual(
    sequences,
    Array.from({ length: count }, (_, index) => index + 1),
  )
}

for (const concurrency of [1, 4]) {
  test(`checkpoint: ${concurrency} at once, owners drained and lost in turn, each message is applied once and in order per key`, async (t) => {
    const world = await startStreamsWorld(t)
    const book = new FencedBook()
    const handlers = consumerOf(world, book, { concurrency })
    await world.publish(['a', 'b', 'c', 'd.e', ''], 400)
    for (let generation = 1; book.entries.length < 400; generation += 1) {
      const served = await serve(handlers, 0, generation)
      const wanted = Math.min(400, book.entries.length + 20)
      await eventually(() => book.entries.length >= wanted, { ...SOON, what: `${wanted} applied` })
      // The lost owner's work goes on while the next serves: its late commits meet the fence.
      if (generation % 2 === 0) served.lose()
      else await served.handOver()
    }
    assertEachOnce(book, 400)
    assertRising(book)
    assert.equal(book.checkpoint(0), 400)
    assert.ok(book.refusals > 0, 'no late commit met the fence')
  })
}

test('checkpoint: with several at once, keys overlap, one key does not, and nothing above a gap is committed', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  const running = new Map<string, number>()
  let most = 0
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const handlers = consumerOf(world, book, {
    concurrency: 3,
    handle: async ({ message, token, checkpoint, idempotencyKey }) => {
      const { key, sequence } = message
      running.set(key, (running.get(key) ?? 0) + 1)
      assert.equal(running.get(key), 1, `${key} overlaps`)
      most = Math.max(most, [...running.values()].filter((number) => number > 0).length)
      if (sequence === 1) await held
      else await delay(2)
      book.commit(token, { key, sequence, idempotencyKey, checkpoint: checkpoint.sequence })
      running.set(key, 0)
    },
  })
  await world.publish(['a', 'b', 'c'], 60)
  const served = await serve(handlers, 0, 1)
  // The window is 24: sequence 1 is open, its key's others wait, the other keys' go on until it is full.
  await eventually(() => book.entries.length >= 14, { ...SOON, what: 'the other keys' })
  assert.equal(most, 3)
  assert.ok(book.entries.every(({ key }) => key !== 'a'))
  assert.equal(book.checkpoint(0), 0, 'committed past the open message')
  letGo()
  await eventually(() => book.entries.length === 60, { ...SOON, what: 'all' })
  await served.handOver()
  assert.equal(book.checkpoint(0), 60)
  assertEachOnce(book, 60)
  assertRising(book)
})

test('checkpoint: a slow handler holds back its partition: no more is taken than the window', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  let begun = 0
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  await world.publish(['a', 'b', 'c', 'd', 'e', 'f'], 300)
  let delivered = 0
  const counted = {
    ...world.streams,
    read: async function* (options: Parameters<typeof world.streams.read>[0]) {
      for await (const message of world.streams.read(options)) {
        delivered += 1
        yield message
      }
    },
  }
  const handlers = consumerOf({ ...world, streams: counted }, book, {
    ...{ concurrency: 2, window: 4, prefetch: 8 },
    handle: async ({ message, token, checkpoint, idempotencyKey }) => {
      begun += 1
      await held
      const { key, sequence } = message
      book.commit(token, { key, sequence, idempotencyKey, checkpoint: checkpoint.sequence })
    },
  })
  const served = await serve(handlers, 0, 1)
  await eventually(() => delivered === 4, { ...SOON, what: 'a full window' })
  // A round trip through the server is time enough for one more, were it taken.
  await world.streams.streamState(PREFIX)
  assert.deepEqual({ begun, delivered }, { begun: 2, delivered: 4 })
  letGo()
  await eventually(() => book.entries.length === 300, { ...SOON, what: 'all' })
  await served.handOver()
  assertEachOnce(book, 300)
})

test('checkpoint: a message that fails each time becomes a dead letter with reason and token; no owner meets it again', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  const attempts: number[] = []
  const seen: string[] = []
  const handlers = consumerOf(world, book, {
    failuresMax: 3,
    onDeadLetter: ({ key }) => seen.push(key),
    handle: ({ message, token, checkpoint, idempotencyKey, attempt }) => {
      const { key, sequence } = message
      if (key === 'bad') {
        attempts.push(attempt)
        throw new Error('cannot be read')
      }
      book.commit(token, { key, sequence, idempotencyKey, checkpoint: checkpoint.sequence })
    },
  })
  await world.publish(['good', 'bad'], 2)
  const first = await serve(handlers, 0, 7)
  const [letter] = await world.letters(1)
  await eventually(() => book.checkpoint(0) === 2, { ...SOON, what: 'passed over' })
  assert.deepEqual(attempts, [1, 2, 3])
  assert.deepEqual(seen, ['bad'])
  assert.deepEqual(letter, {
    ...{ v: 1, stream: PREFIX, subject: 'orders.0.bad', key: 'bad', sequence: 2, messageId: 'm-2' },
    data: Buffer.from('2').toString('base64'),
    ...{ reason: 'cannot be read', failures: 3, token: first.grant.token },
  })
  await first.handOver()
  const second = await serve(handlers, 0, 8)
  await world.publish(['good'], 1)
  await eventually(() => book.checkpoint(0) === 3, { ...SOON, what: 'the next message' })
  assert.deepEqual(attempts, [1, 2, 3])
  await second.handOver()
})

test('checkpoint: no stream for dead letters, the message is not passed over and the run fails with the remedy', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  const streams = {
    ...world.streams,
    publish: async () => ({ ok: false, reason: 'not-sent', detail: '503' }) as const,
  }
  const handlers = consumerOf({ ...world, streams }, book, {
    failuresMax: 1,
    handle: () => {
      throw new Error('cannot be read')
    },
  })
  await world.publish(['bad'], 1)
  const served = await serve(handlers, 0, 1)
  const error = await served.ended
  assert.ok(isTenureError(error, 'conflict'))
  assert.match(error.message, /ensureWorkStreams/)
  assert.equal(book.checkpoint(0), null)
})

test('checkpoint: refused by the fence, a grant that is over ends quietly, one that goes on is told', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  let refused = 0
  const handlers = consumerOf(world, book, {
    handle: () => {
      refused += 1
      throw createTenureError('fence-refused', 'stale', {
        details: { highest: { incarnation: 1, generation: 9 } },
      })
    },
  })
  await world.publish(['a'], 3)
  const over = await serve(handlers, 0, 1)
  await eventually(() => refused === 1, { ...SOON, what: 'a refusal' })
  over.lose()
  assert.equal(await over.ended, null)
  assert.deepEqual(over.grant.refusals, [{ incarnation: 1, generation: 9 }])
  const goesOn = await serve(handlers, 0, 2)
  assert.ok(isTenureError(await goesOn.ended, 'fence-refused'))
  assert.equal(refused, 2, 'it went on after a refusal')
  // Refused at the seal, nothing is read.
  await assert.rejects(serve(handlers, 0, 1), (error) => isTenureError(error, 'fence-refused'))
})

test('checkpoint: a stream made anew below the checkpoint is an error, not silence', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  const handlers = consumerOf(world, book)
  book.seal({ ...(await serve(handlers, 0, 1)).grant.token })
  const served = await serve(consumerOf(world, book, { checkpoint: { load: () => 17 } }), 0, 2)
  const error = await served.ended
  assert.ok(isTenureError(error, 'conflict'))
  assert.match(error.message, /checkpoint 17 is beyond the end of stream orders \(0\)/)
  await assert.rejects(ensureWorkStreams(world.streams, { prefix: 'no spaces' }), (refusal) =>
    isTenureError(refusal, 'invalid-argument'),
  )
})

test('checkpoint: the server restarted under the consumer, nothing is lost or doubled', async (t) => {
  const world = await startStreamsWorld(t)
  const book = new FencedBook()
  await world.publish(['a', 'b', 'c'], 150)
  const served = await serve(consumerOf(world, book), 0, 1)
  await eventually(() => book.entries.length >= 30, { ...SOON, what: 'a start' })
  await world.nats.kill()
  await world.nats.restart()
  await world.publish(['a', 'b', 'c'], 50)
  await eventually(() => book.entries.length >= 200, { ...SOON, what: 'all' })
  await served.handOver()
  assertEachOnce(book, 200)
  assert.deepEqual(book.replays, [])
})
