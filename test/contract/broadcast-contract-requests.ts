import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytes, connectAll, subscribed, text } from './broadcast-actions.ts'
import type { BroadcastWorldOf } from './broadcast-contract.ts'
import type { BroadcastWorld } from './world.ts'

export function requestContract(worldOf: BroadcastWorldOf): void {
  /** A subject where each request gets these replies; requests from `asker` arrive. */
  const start = async (world: BroadcastWorld, replies: readonly string[]) => {
    const [asker, answerer] = await connectAll(world)
    const subject = world.freshSubject()
    const requests: string[] = []
    answerer.subscribe(subject, (message) => {
      requests.push(text(message.data))
      for (const reply of replies) message.respond(bytes(reply))
    })
    await subscribed(world, asker, answerer, subject)
    return { asker, subject, requests }
  }

  test('replies are handed over in order until the asker has what it wants', async () => {
    const world = worldOf()
    const { asker, subject, requests } = await start(world, ['part 1', 'part 2', 'last', 'extra'])
    const replies: string[] = []
    const complete = await world.run(
      asker.request(subject, bytes('the map'), { timeoutMs: 5_000 }, (data) => {
        replies.push(text(data))
        return text(data) === 'last'
      }),
    )
    assert.deepEqual([complete, replies], [true, ['part 1', 'part 2', 'last']])
    assert.equal(requests.at(-1), 'the map')
    // The reply too many has arrived by the time that another request is answered.
    await world.run(asker.request(subject, bytes('x'), { timeoutMs: 5_000 }, () => true))
    assert.deepEqual(replies, ['part 1', 'part 2', 'last'])
  })

  test('a request that stays incomplete ends false at its timeout', async () => {
    const world = worldOf()
    const { asker, subject } = await start(world, ['part 1'])
    const startedAtMs = world.nowMs()
    let heard = 0
    const complete = await world.run(
      asker.request(subject, bytes('?'), { timeoutMs: 300 }, () => {
        heard += 1
        return false
      }),
    )
    assert.deepEqual([complete, heard], [false, 1])
    const tookMs = world.nowMs() - startedAtMs
    assert.ok(tookMs >= 295 && tookMs < 3_000, `after ${tookMs} ms`)
  })

  test('a request that nobody hears ends false, no later than its timeout', async () => {
    const world = worldOf()
    const [asker] = await connectAll(world)
    const startedAtMs = world.nowMs()
    const complete = await world.run(
      asker.request(world.freshSubject(), bytes('?'), { timeoutMs: 1_000 }, () => true),
    )
    assert.equal(complete, false)
    assert.ok(world.nowMs() - startedAtMs < 3_000)
  })

  test('requests under way at once get their own replies', async () => {
    const world = worldOf()
    const [asker, answerer] = await connectAll(world)
    const subject = world.freshSubject()
    answerer.subscribe(subject, (message) => message.respond(message.data))
    await subscribed(world, asker, answerer, subject)
    const ask = async (question: string) => {
      let answer = ''
      await asker.request(subject, bytes(question), { timeoutMs: 5_000 }, (data) => {
        answer = text(data)
        return true
      })
      return answer
    }
    const questions = Array.from({ length: 50 }, (_, index) => `question ${index}`)
    assert.deepEqual(await world.run(Promise.all(questions.map(ask))), questions)
  })

  test('answering a message that expects no answer does nothing', async () => {
    const world = worldOf()
    const { asker, subject, requests } = await start(world, ['reply'])
    asker.publish(subject, bytes('a statement'))
    await world.eventually('it arrives', () => requests.includes('a statement'))
    assert.equal(asker.status(), 'connected')
  })
}
