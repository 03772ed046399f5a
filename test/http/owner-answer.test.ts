// Plan: ask one `OwnerAnswers` again and again while what it keeps goes out of date in each way it can.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OwnerAnswers } from '../../src/http/owner-answer.ts'
import { createVirtualClock } from '../../src/testing/virtual-clock.ts'
import { createPlainGroup, ownedBy } from './plain-groups.ts'

function answersOfPlainGroup() {
  const group = createPlainGroup()
  const view = group.groups.find('orders')?.view
  assert.ok(view !== undefined)
  const clock = createVirtualClock()
  const edited = { edition: 1 }
  const answers = new OwnerAnswers('orders', { ...view, edition: () => edited.edition }, clock)
  const ask = (partition: number) => {
    const { text, bytes } = answers.ofPartition(partition)
    assert.equal(bytes, Buffer.byteLength(text))
    return JSON.parse(text + answers.freshness().text)
  }
  return { group, clock, edited, answers, ask }
}

test('an answer, asked again, is kept text', () => {
  const { answers } = answersOfPlainGroup()
  assert.equal(answers.ofPartition(3), answers.ofPartition(3))
  assert.equal(answers.freshness(), answers.freshness())
})

test('an answer, the map changed, tells the new owner', () => {
  const { group, edited, ask } = answersOfPlainGroup()
  assert.equal(ask(3).owner.member, 'orders-1')
  group.change({ ...ownedBy('orders-0', 3), generation: 6 })
  edited.edition += 1
  const { owner, token, version } = ask(3)
  assert.deepEqual([owner.member, token.generation, version], ['orders-0', 6, '1764440000.101'])
})

test('an answer, served or no longer, says so without a change of the map', () => {
  const { group, ask } = answersOfPlainGroup()
  for (const serving of [true, false, true]) {
    group.change({ partition: 3, serving })
    assert.equal(ask(3).serving, serving)
    assert.equal(ask(2).serving, true)
  }
})

test('an answer, the clock moved on, tells the new moment', async () => {
  const { clock, ask } = answersOfPlainGroup()
  const { asOfMs } = ask(3)
  await clock.advance(7)
  assert.equal(ask(3).asOfMs, asOfMs + 7)
})

test('an answer, the map older or stale, says so', () => {
  const { group, answers, ask } = answersOfPlainGroup()
  const { etag } = answers.freshness()
  group.ageMs = 90_000
  assert.deepEqual([ask(3).ageMs, ask(3).stale], [90_000, false])
  group.stale = true
  assert.deepEqual([ask(3).ageMs, ask(3).stale], [90_000, true])
  assert.equal(answers.freshness().etag, etag)
})

test('an answer, of an address that is not ASCII, counts its bytes', () => {
  const { group, edited, ask } = answersOfPlainGroup()
  const { owner } = ownedBy('orders-0', 3)
  assert.ok(owner !== null)
  group.change({ partition: 3, owner: { ...owner, address: 'größe"7000' } })
  edited.edition += 1
  assert.equal(ask(3).owner.address, 'größe"7000')
})
