/** Plan: the publisher on a real nats-server and, for its partitions, a real etcd. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorker } from '../../src/composition/start-worker.ts'
import { createPublisher, type Streams } from '../../src/composition/work.ts'
import { partitionOf } from '../../src/core/partition-key.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { startEtcd } from '../support/servers.ts'
import { PREFIX, startStreamsWorld } from './streams-world.ts'

const SILENT = { record: () => {} }

async function readAll(streams: Streams, count: number) {
  const stop = new AbortController()
  const limit = setTimeout(() => stop.abort(), 20_000)
  const read: { subject: string; text: string }[] = []
  const from = { stream: PREFIX, subject: `${PREFIX}.>`, fromSequence: 1, signal: stop.signal }
  for await (const { subject, data } of streams.read(from)) {
    read.push({ subject, text: Buffer.from(data).toString() })
    if (read.length === count) break
  }
  clearTimeout(limit)
  return read
}

test('publisher: the server killed under it, each message is stored once and one key stays in order', async (t) => {
  const { nats, streams } = await startStreamsWorld(t)
  const publisher = await createPublisher({ streams, prefix: PREFIX, partitions: 8 })
  const publishing: Promise<unknown>[] = []
  for (let number = 0; number < 300; number += 1) {
    const key = `key ${number % 7}`
    publishing.push(publisher.publish(key, String(number), { messageId: `m-${number}` }))
    if (number !== 150) continue
    await nats.kill()
    await nats.restart()
  }
  await Promise.all(publishing)
  const again = await publisher.publish('key 0', '0', { messageId: 'm-0' })
  assert.equal(again.duplicate, true)
  const { messages } = await streams.streamState(PREFIX)
  assert.equal(messages, 300)
  const last = new Map<string, number>()
  for (const { subject, text } of await readAll(streams, 300)) {
    const number = Number(text)
    const key = `key ${number % 7}`
    assert.equal(subject, `${PREFIX}.${partitionOf(key, 8)}.key%20${number % 7}`)
    assert.ok(number > (last.get(key) ?? -1), `${key}: ${number} out of order`)
    last.set(key, number)
  }
})

test('publisher: told a group, it takes the partitions from its settings; an unknown one is an error', async (t) => {
  const [etcd, { streams }] = await Promise.all([startEtcd(t), startStreamsWorld(t)])
  const connection = { etcd: { endpoints: [etcd.endpoint] }, streams, prefix: PREFIX }
  await assert.rejects(createPublisher({ ...connection, group: 'shop' }), (error) =>
    isTenureError(error, 'unknown-group'),
  )
  const worker = await startWorker({
    ...{ group: 'shop', settings: { partitions: 37 }, signals: false, telemetry: SILENT },
    etcd: connection.etcd,
    nats: { servers: ['127.0.0.1:1'] },
  })
  const publisher = await createPublisher({ ...connection, group: 'shop' })
  const { partition } = await publisher.publish('customer-17', 'x', { messageId: '1' })
  assert.equal(partition, partitionOf('customer-17', 37))
  await publisher.close()
  await worker.stop()
})

test('publisher: no stream takes it, the deadline passes and the error says it was not sent', async (t) => {
  const { streams } = await startStreamsWorld(t)
  const publisher = await createPublisher({
    ...{ streams, prefix: 'nobody', partitions: 1, deadlineMs: 200 },
  })
  await assert.rejects(
    publisher.publish('a', 'x', { messageId: '1' }),
    (error) => isTenureError(error, 'timed-out') && error.details['outcome'] === 'not-sent',
  )
})
