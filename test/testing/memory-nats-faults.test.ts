import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMemoryNats,
  createSeededRandom,
  createVirtualClock,
  type MemoryBroadcast,
  type MemoryNatsOptions,
} from '../../src/testing/index.ts'

async function start(options: Partial<MemoryNatsOptions> = {}) {
  const clock = createVirtualClock()
  const nats = createMemoryNats({ clock, random: createSeededRandom(1), ...options })
  const [from, to] = [nats.connect('from'), nats.connect('to')]
  const heard = listen(to)
  await clock.advance(10)
  return { clock, nats, from, to, heard }
}

function listen(to: MemoryBroadcast): string[] {
  const heard: string[] = []
  to.subscribe('subject', (message) => heard.push(new TextDecoder().decode(message.data)))
  return heard
}

function send(from: MemoryBroadcast, count: number): string[] {
  const sent = Array.from({ length: count }, (_, index) => String(index))
  for (const message of sent) from.publish('subject', new TextEncoder().encode(message))
  return sent
}

test('messages are delayed each by its own time and keep their order', async () => {
  const { clock, from, to, heard } = await start()
  from.faults.publishDelay = { minMs: 0, maxMs: 300 }
  to.faults.deliverDelay = { minMs: 0, maxMs: 300 }
  const sent = send(from, 50)
  await clock.advance(100)
  assert.ok(heard.length < 50)
  await clock.advance(1_000)
  assert.deepEqual(heard, sent)
})

test('messages are lost by chance, on either way, and the rest keeps its order', async () => {
  for (const way of ['losePublishedChance', 'loseDeliveredChance'] as const) {
    const { clock, from, to, heard } = await start()
    Object.assign(way === 'losePublishedChance' ? from.faults : to.faults, { [way]: 0.3 })
    send(from, 300)
    await clock.advance(100)
    assert.ok(heard.length > 170 && heard.length < 250, `${heard.length} of 300`)
    assert.deepEqual(
      heard,
      [...heard].sort((one, other) => Number(one) - Number(other)),
    )
  }
})

test('who is disconnected publishes nothing and misses what is published meanwhile', async () => {
  const { clock, from, to, heard } = await start()
  send(from, 1)
  to.disconnect()
  await clock.advance(10)
  assert.deepEqual(heard, [])
  assert.equal(to.publish('subject', new Uint8Array()), false)
  send(from, 2)
  await clock.advance(60_000)
  assert.equal(to.status(), 'disconnected')
  to.reconnect()
  send(from, 3)
  await clock.advance(10)
  assert.deepEqual([heard, to.status()], [['0', '1', '2'], 'connected'])
})

test('a process that does not read is dropped as a slow consumer and comes back with a gap', async () => {
  const { clock, nats, from } = await start({ maxPendingBytes: 1_000 })
  const process = clock.createProcess()
  const slow = nats.connect('slow', { clock: process })
  const heard = listen(slow)
  const statuses: string[] = []
  slow.onStatus((status) => statuses.push(status))
  await clock.advance(10)
  process.pause()
  for (let message = 0; message < 20; message += 1) from.publish('subject', new Uint8Array(100))
  await clock.advance(1_000)
  process.resume()
  await clock.advance(2_000)
  assert.deepEqual(statuses, ['disconnected', 'connected'])
  assert.equal(heard.length, 0)
  send(from, 1)
  await clock.advance(10)
  assert.deepEqual(heard, ['0'])
})

test('a request under way ends when its connection does', async () => {
  const { clock, nats, from, to } = await start()
  to.subscribe('question', () => {})
  await clock.advance(10)
  const asked = from.request('question', new Uint8Array(), { timeoutMs: 60_000 }, () => true)
  await clock.advance(10)
  nats.stop()
  assert.equal(await clock.run(asked, { limitMs: 100 }), false)
})

test("a message handed over is the sender's bytes at the time, not its buffer", async () => {
  const { clock, from, heard } = await start()
  const buffer = new TextEncoder().encode('first')
  from.publish('subject', buffer)
  buffer.fill(0)
  await clock.advance(10)
  assert.deepEqual(heard, ['first'])
})

const OUT = { requests: true, replies: false }
const IN = { requests: false, replies: true }

test('a cut for a moment delays what is sent over it, in its direction alone, in order', async () => {
  for (const way of [IN, OUT]) {
    const { clock, from, to, heard } = await start()
    const back: string[] = []
    from.subscribe('back', ({ data }) => back.push(new TextDecoder().decode(data)))
    await clock.advance(10)
    to.cutOff(way)
    const sent = send(from, 3)
    for (const message of sent) to.publish('back', new TextEncoder().encode(message))
    await clock.advance(5_000)
    assert.deepEqual([heard, back], way === IN ? [[], sent] : [sent, []])
    to.heal()
    await clock.advance(10)
    assert.deepEqual([heard, back, to.status()], [sent, sent, 'connected'])
  }
})

test('a cut for long ends the connection, with all that waited; it comes back once healed', async () => {
  const { clock, from, to, heard } = await start()
  const statuses: string[] = []
  to.onStatus((status) => statuses.push(status))
  to.cutOff(IN)
  send(from, 3)
  await clock.advance(30_000)
  assert.deepEqual(statuses, ['disconnected'])
  to.heal()
  await clock.advance(1_000)
  send(from, 1)
  await clock.advance(10)
  assert.deepEqual([heard, statuses], [['0'], ['disconnected', 'connected']])
})

test('a process that is paused while its connection breaks believes in it until it runs', async () => {
  const { clock, nats } = await start()
  const process = clock.createProcess()
  const paused = nats.connect('paused', { clock: process })
  process.pause()
  nats.stop()
  nats.start()
  await clock.advance(5_000)
  assert.equal(paused.status(), 'connected')
  assert.equal(paused.publish('subject', new Uint8Array()), true)
  process.resume()
  await clock.advance(2_000)
  assert.equal(paused.status(), 'connected')
  const heard = listen(paused)
  await clock.advance(10)
  paused.publish('subject', new TextEncoder().encode('again'))
  await clock.advance(10)
  assert.deepEqual(heard, ['again'])
})

test('a connection that ends takes its subscriptions along, one just closed included', async () => {
  const { clock, nats, from } = await start()
  for (const end of ['close', 'abandon'] as const) {
    const leaving = nats.connect('leaving')
    const subscription = leaving.subscribe('question', ({ respond }) => respond(new Uint8Array()))
    await clock.advance(10)
    subscription.close()
    await leaving[end]()
    await clock.advance(10)
    // With nobody subscribed the server says so at once, instead of letting the asker wait.
    const asked = from.request('question', new Uint8Array(), { timeoutMs: 60_000 }, () => true)
    assert.equal(await clock.run(asked, { limitMs: 100 }), false)
  }
})
