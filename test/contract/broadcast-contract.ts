/**
 * What every broadcast promises (`src/ports/broadcast.ts`), as one suite for all of them.
 *
 * Plan: publish, subscribe, queue groups, requests, and a server that goes away. Delivery is never
 * promised, so the tests publish again until a message arrives where only arrival is the question.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { BroadcastStatus } from '../../src/ports/broadcast.ts'
import { bytes, collect, connectAll, type MessageLog, subscribed } from './broadcast-actions.ts'
import { requestContract } from './broadcast-contract-requests.ts'
import type { BroadcastWorld, CleanUp } from './world.ts'

export type BroadcastWorldOf = () => BroadcastWorld

export function broadcastContract(
  name: string,
  makeWorld: (cleanUp: CleanUp) => Promise<BroadcastWorld>,
): void {
  describe(`broadcast contract: ${name}`, () => {
    let world: BroadcastWorld | null = null
    const cleanUps: (() => void | Promise<void>)[] = []
    const worldOf: BroadcastWorldOf = () => {
      if (world === null) throw new Error('the world is not made yet')
      return world
    }
    before(async () => {
      world = await makeWorld({ after: (callback) => cleanUps.push(callback) })
    })
    after(async () => {
      for (const cleanUp of cleanUps.reverse()) await cleanUp()
    })
    publishContract(worldOf)
    requestContract(worldOf)
    // Last: they stop the server.
    connectionContract(worldOf)
  })
}

function publishContract(worldOf: BroadcastWorldOf): void {
  test('messages of one publisher on one subject arrive in order, to each subscriber', async () => {
    const world = worldOf()
    const [from, one, other] = await connectAll(world)
    const subject = world.freshSubject()
    const logs = [
      await subscribed(world, from, one, subject),
      await subscribed(world, from, other, subject),
    ]
    const sent = Array.from({ length: 500 }, (_, index) => String(index))
    for (const message of sent) assert.equal(from.publish(subject, bytes(message)), true)
    await world.eventually('all arrive', () => logs.every((log) => log.texts().length >= 500))
    for (const log of logs) assert.deepEqual(log.texts(), sent)
  })

  test('a star stands for one token, an end mark for one or more, and nothing else matches', async () => {
    const world = worldOf()
    const [from, to] = await connectAll(world)
    const root = world.freshSubject()
    const patterns = [`${root}.a.b`, `${root}.*.b`, `${root}.a.*`, `${root}.*`, `${root}.>`]
    const logs = patterns.map((pattern) => collect(to, pattern))
    const done = await subscribed(world, from, to, `${root}-done`)
    const subjects = ['', '.a', '.a.b', '.a.c', '.x.b', '.a.b.c', 'x.a'].map((end) => root + end)
    for (const subject of subjects) from.publish(subject, bytes(subject.slice(root.length)))
    from.publish(`${root}-done`, bytes('done'))
    await world.eventually('the last arrives', () => done.texts().includes('done'))
    assert.deepEqual(
      logs.map((log) => log.texts()),
      [
        ['.a.b'],
        ['.a.b', '.x.b'],
        ['.a.b', '.a.c'],
        ['.a'],
        ['.a', '.a.b', '.a.c', '.x.b', '.a.b.c'],
      ],
    )
    assert.equal(logs[3]?.messages[0]?.subject, `${root}.a`)
  })

  test('one member of each queue group gets a message, and every plain subscriber', async () => {
    const world = worldOf()
    const [from, a, b, c] = await connectAll(world)
    const subject = world.freshSubject()
    const members = [collect(a, subject, 'queue'), collect(b, subject, 'queue')]
    const alone = collect(c, subject, 'other-queue')
    const plain = await subscribed(world, from, c, subject)
    await world.eventually('the members stand', () => {
      from.publish(subject, bytes('early'))
      return members.every((member) => member.texts().length > 0)
    })
    const sent = Array.from({ length: 100 }, (_, index) => String(index))
    for (const message of sent) from.publish(subject, bytes(message))
    const numbers = (log: MessageLog) => log.texts().filter((message) => message !== 'early')
    const shared = () => members.flatMap(numbers).sort((one, next) => Number(one) - Number(next))
    await world.eventually('all arrive', () =>
      [numbers(alone), numbers(plain), shared()].every((list) => list.length >= sent.length),
    )
    assert.deepEqual([numbers(alone), numbers(plain), shared()], [sent, sent, sent])
  })

  test('a publisher hears itself, a closed subscription hears nothing', async () => {
    const world = worldOf()
    const [only] = await connectAll(world)
    const subject = world.freshSubject()
    const log = await subscribed(world, only, only, subject)
    const other = await subscribed(world, only, only, subject)
    const before = log.texts().length
    log.close()
    only.publish(subject, bytes('after'))
    await world.eventually('the open one hears', () => other.texts().includes('after'))
    assert.equal(log.texts().length, before)
  })

  test('a payload of the largest size arrives whole, a larger one is not published', async () => {
    const world = worldOf()
    const [from, to] = await connectAll(world)
    const subject = world.freshSubject()
    const log = await subscribed(world, from, to, subject)
    const most = from.maxPayloadBytes()
    assert.ok(most >= 65_536)
    assert.equal(from.publish(subject, new Uint8Array(most + 1)), false)
    assert.equal(from.publish(subject, new Uint8Array(most).fill(7)), true)
    from.publish(subject, bytes('done'))
    await world.eventually('both arrive', () => log.texts().includes('done'))
    const sizes = log.messages.map((message) => message.data.byteLength)
    assert.deepEqual(
      sizes.filter((size) => size >= most),
      [most],
    )
  })
}

function connectionContract(worldOf: BroadcastWorldOf): void {
  test('a server restart shows as two statuses, loses what was published, and keeps subscriptions', async () => {
    const world = worldOf()
    const [from, to] = await connectAll(world)
    const subject = world.freshSubject()
    const log = await subscribed(world, from, to, subject)
    const statuses: BroadcastStatus[] = []
    const listening = from.onStatus((status) => statuses.push(status))
    assert.deepEqual([from.status(), to.status()], ['connected', 'connected'])
    await world.stopServer()
    await world.eventually('both notice', () =>
      [from, to].every((broadcast) => broadcast.status() === 'disconnected'),
    )
    assert.equal(from.publish(subject, bytes('into the void')), false)
    const unanswered = from.request(subject, bytes('?'), { timeoutMs: 2_000 }, () => true)
    assert.equal(await world.run(unanswered), false)
    await world.startServer()
    await world.eventually('both are back', () =>
      [from, to].every((broadcast) => broadcast.status() === 'connected'),
    )
    // The subscriber's subscriptions stand before its status says connected.
    assert.equal(from.publish(subject, bytes('again')), true)
    await world.eventually('the message arrives', () => log.texts().includes('again'))
    assert.equal(log.texts().includes('into the void'), false)
    assert.deepEqual(statuses, ['disconnected', 'connected'])
    listening.close()
  })

  test('a closed broadcast publishes nothing, hears nothing and says so', async () => {
    const world = worldOf()
    const [from, to] = await connectAll(world)
    const subject = world.freshSubject()
    const log = await subscribed(world, from, to, subject)
    const witness = await subscribed(world, from, from, subject)
    const before = log.texts().length
    await world.run(to.close())
    await world.run(to.close())
    assert.equal(to.status(), 'closed')
    assert.equal(to.publish(subject, bytes('from the grave')), false)
    from.publish(subject, bytes('after'))
    await world.eventually('the witness hears', () => witness.texts().includes('after'))
    assert.equal(log.texts().length, before)
    assert.equal(witness.texts().includes('from the grave'), false)
  })
}
