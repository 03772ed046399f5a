/** Plan: the JetStream wrapper on a real nats-server, restarted under a reader and a publisher. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTenureError } from '../../src/core/tenure-error.ts'
import type { JetStream } from '../../src/nats/jetstream.ts'
import { jetStreamOver } from '../../src/nats/jetstream.ts'
import type { StreamMessage } from '../../src/nats/jetstream-reader.ts'
import { openNatsLink } from '../../src/nats/nats-link.ts'
import type { CleanUp } from '../support/servers.ts'
import { startNats } from '../support/servers.ts'

const STREAM = { name: 'ORDERS', subjects: ['orders.*'] }

async function open(cleanUp: CleanUp, url: string): Promise<JetStream> {
  const link = openNatsLink({ servers: [url] })
  cleanUp.after(() => link.close())
  assert.equal(await link.waitConnected(5000), true)
  return jetStreamOver(link)
}

async function publishAll(jetStream: JetStream, subject: string, from: number, to: number) {
  for (let number = from; number <= to; number += 1) {
    const data = Buffer.from(String(number))
    for (;;) {
      const outcome = await jetStream.publish(subject, data, { messageId: `${subject}/${number}` })
      if (outcome.ok) break
      assert.notEqual(outcome.reason, 'refused', outcome.detail)
    }
  }
}

/** Reads until `count` messages came, or forever; stops the reader then. */
async function take(
  jetStream: JetStream,
  subject: string,
  fromSequence: number,
  count: number,
  onMessage: (taken: number) => void | Promise<void> = () => {},
): Promise<StreamMessage[]> {
  const stop = new AbortController()
  const limit = setTimeout(() => stop.abort(), 30_000)
  const messages: StreamMessage[] = []
  const options = { stream: 'ORDERS', subject, fromSequence, signal: stop.signal, batch: 10 }
  for await (const message of jetStream.read(options)) {
    messages.push(message)
    await onMessage(messages.length)
    if (messages.length === count) break
  }
  clearTimeout(limit)
  return messages
}

function numbers(messages: readonly StreamMessage[]): number[] {
  return messages.map(({ data }) => Number(Buffer.from(data).toString()))
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

test('jetstream: an id published twice is stored once; the outcome says so', async (t) => {
  const { url } = await startNats(t, { jetStream: true })
  const jetStream = await open(t, url)
  await jetStream.ensureStream(STREAM)
  const first = await jetStream.publish('orders.1', Buffer.from('a'), { messageId: 'x' })
  assert.deepEqual(first, { ok: true, sequence: 1, duplicate: false })
  const again = await jetStream.publish('orders.1', Buffer.from('a'), { messageId: 'x' })
  assert.deepEqual(again, { ok: true, sequence: 1, duplicate: true })
  assert.deepEqual(await jetStream.streamState('ORDERS'), {
    messages: 1,
    firstSequence: 1,
    lastSequence: 1,
  })
  const nowhere = await jetStream.publish('nobody.1', Buffer.from('a'), { messageId: 'x' })
  assert.equal(nowhere.ok ? '' : nowhere.reason, 'not-sent')
})

test('jetstream: ensured again with other limits, the stream takes them and keeps its messages', async (t) => {
  const { url } = await startNats(t, { jetStream: true })
  const jetStream = await open(t, url)
  await jetStream.ensureStream(STREAM)
  await publishAll(jetStream, 'orders.1', 1, 5)
  await jetStream.ensureStream({ ...STREAM, maxMessages: 3 })
  const state = await jetStream.streamState('ORDERS')
  assert.deepEqual(state, { messages: 3, firstSequence: 3, lastSequence: 5 })
  await assert.rejects(jetStream.streamState('NONE'), (error) => isTenureError(error, 'conflict'))
  const refused = jetStream.ensureStream({ name: 'OTHER', subjects: ['orders.7'] })
  await assert.rejects(refused, (error) => isTenureError(error, 'conflict'))
})

test('jetstream: one subject is read in order from a sequence, past and future messages', async (t) => {
  const { url } = await startNats(t, { jetStream: true })
  const jetStream = await open(t, url)
  await jetStream.ensureStream(STREAM)
  await publishAll(jetStream, 'orders.1', 1, 25)
  await publishAll(jetStream, 'orders.2', 1, 25)
  const reading = take(jetStream, 'orders.2', 31, 40, async (taken) => {
    if (taken === 20) await publishAll(jetStream, 'orders.2', 26, 45)
  })
  const messages = await reading
  assert.deepEqual(numbers(messages), range(6, 45))
  const [first] = messages
  assert.equal(first?.sequence, 31)
  assert.equal(first?.messageId, 'orders.2/6')
  assert.equal(first?.subject, 'orders.2')
  assert.ok(Math.abs((first?.storedAtMs ?? 0) - Date.now()) < 60_000)
})

test('jetstream: server killed and restarted under a reader, nothing is skipped or twice', async (t) => {
  const server = await startNats(t, { jetStream: true })
  const jetStream = await open(t, server.url)
  await jetStream.ensureStream(STREAM)
  await publishAll(jetStream, 'orders.1', 1, 15)
  let producing: Promise<void> = Promise.resolve()
  const messages = await take(jetStream, 'orders.1', 1, 60, async (taken) => {
    if (taken !== 12) return
    await server.kill()
    await server.restart()
    producing = publishAll(jetStream, 'orders.1', 16, 60)
  })
  await producing
  assert.deepEqual(numbers(messages), range(1, 60))
})

test('jetstream: a slow reader holds one batch and loses nothing', async (t) => {
  const { url } = await startNats(t, { jetStream: true })
  const jetStream = await open(t, url)
  await jetStream.ensureStream(STREAM)
  await publishAll(jetStream, 'orders.1', 1, 35)
  // Each message waits for another round trip, so the reader is always slower than the server.
  const messages = await take(jetStream, 'orders.1', 1, 35, async () => {
    await jetStream.streamState('ORDERS')
  })
  assert.deepEqual(numbers(messages), range(1, 35))
})

test('jetstream: a reader that is told to stop ends without an error', async (t) => {
  const { url } = await startNats(t, { jetStream: true })
  const jetStream = await open(t, url)
  await jetStream.ensureStream(STREAM)
  await publishAll(jetStream, 'orders.1', 1, 3)
  const stop = new AbortController()
  const seen: number[] = []
  const options = { stream: 'ORDERS', subject: 'orders.1', fromSequence: 1, signal: stop.signal }
  for await (const message of jetStream.read(options)) {
    seen.push(message.sequence)
    // It waits for a fourth message when the stop comes.
    if (message.sequence === 3) setImmediate(() => stop.abort())
  }
  assert.deepEqual(seen, [1, 2, 3])
  const nowhere = jetStream.read({
    ...options,
    stream: 'NONE',
    signal: new AbortController().signal,
  })
  await assert.rejects(
    async () => {
      for await (const message of nowhere) assert.fail(message.subject)
    },
    (error) => isTenureError(error, 'conflict'),
  )
})
