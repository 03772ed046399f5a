/** Operators' rebalances: taken up, carried out, resumed, cancelled. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberName } from '../../src/core/ids.ts'
import type { RebalanceRecord } from '../../src/core/operator-records.ts'
import { REBALANCES_KEPT } from '../../src/core/operator-records.ts'
import { RebalancerWorld } from './rebalancer-world.ts'

function balanced(settings = {}): RebalancerWorld {
  const world = new RebalancerWorld(settings)
  for (const name of ['a', 'b', 'c']) world.join(name)
  world.own('a', 0, 1, 2, 3)
  world.own('b', 4, 5, 6, 7)
  world.own('c', 8, 9, 10, 11)
  world.perform(world.elect())
  world.converge()
  return world
}

function record(world: RebalancerWorld, id: string): RebalanceRecord {
  const found = world.state.rebalances.get(id)
  if (found === undefined) throw new Error(`no rebalance ${id}`)
  return found
}

const TO_B = { type: 'move', partition: 0, to: memberName('b') } as const
const DRAIN_A = { type: 'drain', member: memberName('a') } as const

test('an explicit move, also while frozen, runs at once and is done when the target owns', () => {
  const world = balanced()
  world.mark(world.keys.freeze)
  world.request(TO_B, 'm1')
  world.turn()
  assert.equal(record(world, 'm1').state, 'running')
  assert.deepEqual(world.revoking(), [0])
  world.drain(0)
  world.turn()
  const { state, moved, planned, finishedAtMs } = record(world, 'm1')
  assert.deepEqual({ state, moved, planned }, { state: 'done', moved: 1, planned: 1 })
  assert.notEqual(finishedAtMs, null)
  assert.equal(world.owners()[0], 'b')
  const told = world.log.flatMap((a) => (a.type === 'rebalance-changed' ? [a.record.state] : []))
  assert.deepEqual(told, ['requested', 'running', 'done'])
})

test('an explicit move to its own owner drains and grants at the next generation, once', () => {
  const world = balanced()
  world.request({ ...TO_B, to: memberName('a') }, 'm1')
  world.converge()
  assert.equal(record(world, 'm1').state, 'done')
  assert.equal(world.state.record(0)?.record.generation, 2)
  assert.equal(world.owners()[0], 'a')
})

test('an explicit move, resumed by a successor before and after its grant, is made once', () => {
  const world = balanced()
  world.request({ ...TO_B, to: memberName('a') }, 'm1')
  world.turn()
  world.perform(world.succeed())
  assert.deepEqual(world.revoking(), [0])
  world.drain(0)
  world.perform(world.succeed())
  assert.equal(record(world, 'm1').state, 'done')
  world.converge()
  assert.equal(world.state.record(0)?.record.generation, 2)
})

test('an explicit move, of a partition whose balance is pending, turns that move to its own target', () => {
  const world = balanced()
  world.join('d')
  world.turn()
  world.advance(1000)
  const [partition = -1] = world.revoking()
  const from = world.owners()[partition]
  const to = memberName(from === 'b' ? 'c' : 'b')
  world.request({ type: 'move', partition, to }, 'm1')
  world.turn()
  const pending = world.state.record(partition)?.record
  assert.equal(pending?.phase === 'revoking' && pending.move.to, to)
  world.converge()
  assert.equal(record(world, 'm1').state, 'done')
})

test('an explicit move, that cannot be, fails and says why', () => {
  const world = balanced()
  world.request({ ...TO_B, partition: 99 }, 'm1')
  world.request({ ...TO_B, to: memberName('nobody') }, 'm2')
  world.mark(world.keys.disabledPartition(3))
  world.request({ ...TO_B, partition: 3 }, 'm3')
  world.converge()
  assert.match(record(world, 'm1').note, /no partition 99/)
  assert.match(record(world, 'm2').note, /nobody is not live/)
  assert.match(record(world, 'm3').note, /disabled/)
  for (const id of ['m1', 'm2', 'm3']) assert.equal(record(world, id).state, 'failed')
})

test('an explicit move, of which the target dies, goes elsewhere and is told as failed', () => {
  const world = balanced()
  world.request(TO_B, 'm1')
  world.turn()
  world.die('b')
  world.own('c', 4, 5, 6, 7)
  world.converge()
  const { state, note } = record(world, 'm1')
  assert.equal(state, 'failed')
  assert.match(note, /it went to [ac]/)
})

test('of two explicit moves of one partition, the newer one is carried out', () => {
  const world = balanced()
  world.request(TO_B, 'm1')
  world.turn()
  world.nowMs += 10
  world.request({ ...TO_B, to: memberName('c') }, 'm2')
  world.converge()
  assert.equal(record(world, 'm1').state, 'failed')
  assert.match(record(world, 'm1').note, /superseded by m2/)
  assert.equal(record(world, 'm2').state, 'done')
  assert.equal(world.owners()[0], 'c')
})

test('a drain cordons the member, moves all it owns to the others, frozen or not, and is done', () => {
  const world = balanced()
  world.mark(world.keys.freeze)
  world.request(DRAIN_A, 'd1')
  world.turn()
  assert.equal(world.state.cordons.get(memberName('a'))?.why, 'drain d1')
  assert.equal(record(world, 'd1').planned, 4)
  assert.deepEqual(world.revoking(), [0, 1, 2, 3])
  world.converge()
  const { state, moved } = record(world, 'd1')
  assert.deepEqual({ state, moved }, { state: 'done', moved: 4 })
  assert.deepEqual(world.counts(), { b: 6, c: 6 })
})

test('a drain, resumed by a successor, goes on where it was', () => {
  const world = balanced()
  world.request(DRAIN_A, 'd1')
  world.turn()
  world.drain(0)
  world.drain(1)
  world.perform(world.succeed())
  world.converge()
  assert.equal(record(world, 'd1').state, 'done')
  assert.equal(record(world, 'd1').moved, 4)
  assert.deepEqual(world.counts(), { b: 6, c: 6 })
})

test('a drain, with nobody to take the partitions, says so and ends when somebody comes', () => {
  const world = balanced()
  world.die('b')
  world.die('c')
  world.request(DRAIN_A, 'd1')
  world.turn()
  world.advance(3000)
  assert.equal(record(world, 'd1').state, 'running')
  assert.match(record(world, 'd1').note, /4 partitions wait for a member/)
  world.join('e')
  world.own('e', 4, 5, 6, 7, 8, 9, 10, 11)
  world.converge()
  assert.equal(record(world, 'd1').state, 'done')
  assert.deepEqual(world.counts(), { e: 12 })
})

test('a drain, cancelled, lifts its own cordon and turns its moves back to the owner', () => {
  const world = balanced()
  world.request(DRAIN_A, 'd1')
  world.turn()
  world.drain(0)
  world.turn()
  const { fromGeneration: _, ...running } = record(world, 'd1')
  world.request(DRAIN_A, 'd1', { ...running, state: 'cancelling' })
  world.converge()
  assert.equal(record(world, 'd1').state, 'cancelled')
  assert.equal(world.state.cordons.has(memberName('a')), false)
  assert.deepEqual(world.owners().slice(1, 4), ['a', 'a', 'a'])
  assert.equal(world.state.record(1)?.record.generation, 2)
})

test('a balance, asked for by an operator, runs without settling and ends when nothing is left', () => {
  const world = balanced()
  world.join('d')
  world.request({ type: 'balance' }, 'b1')
  world.turn()
  world.turn()
  assert.equal(record(world, 'b1').state, 'running')
  assert.equal(record(world, 'b1').planned, 3)
  world.converge()
  assert.equal(record(world, 'b1').state, 'done')
  assert.equal(record(world, 'b1').moved, 3)
  assert.deepEqual(world.counts(), { a: 3, b: 3, c: 3, d: 3 })
})

test('a balance, asked for of a balanced group, is done at once with nothing to move', () => {
  const world = balanced()
  world.request({ type: 'balance' }, 'b1')
  world.turn()
  const { state, planned, note } = record(world, 'b1')
  assert.deepEqual({ state, planned, note }, { state: 'done', planned: 0, note: 'nothing to move' })
})

test('a balance, asked for while frozen, waits and says so', () => {
  const world = balanced()
  world.mark(world.keys.freeze)
  world.join('d')
  world.request({ type: 'balance' }, 'b1')
  world.turn()
  world.advance(5000)
  assert.equal(record(world, 'b1').state, 'requested')
  assert.match(record(world, 'b1').note, /frozen/)
  world.remove(world.keys.freeze)
  world.converge()
  assert.equal(record(world, 'b1').state, 'done')
})

test('a balance, cancelled while running, asks for no more and ends when the pending moves are back', () => {
  const world = balanced({ budget: { movesInFlight: 2 } })
  world.join('d')
  world.request({ type: 'balance' }, 'b1')
  world.turn()
  world.turn()
  assert.equal(world.revoking().length, 2)
  world.request({ type: 'balance' }, 'b1', { ...record(world, 'b1'), state: 'cancelling' })
  world.turn()
  for (const partition of world.revoking()) {
    const pending = world.state.record(partition)?.record
    assert.ok(pending?.phase === 'revoking' && pending.move.to === pending.owner.member)
    world.drain(partition)
  }
  world.turn()
  assert.equal(record(world, 'b1').state, 'cancelled')
  assert.deepEqual(world.revoking(), [])
})

test('progress, of many moves that end one by one, is written at most once a second', () => {
  const world = balanced()
  world.request(DRAIN_A, 'd1')
  world.turn()
  const before = world.log.length
  for (const partition of [0, 1, 2]) {
    world.drain(partition)
    world.turn()
  }
  assert.equal(world.log.slice(before).filter(({ type }) => type === 'write').length, 0)
  world.advance(1000)
  assert.equal(world.log.slice(before).filter(({ type }) => type === 'write').length, 1)
  assert.equal(record(world, 'd1').moved, 3)
})

test('finished rebalances, beyond the number that is kept, are removed, the oldest first', () => {
  const world = balanced()
  for (let index = 0; index < REBALANCES_KEPT + 5; index += 1) {
    const id = `b${String(index).padStart(3, '0')}`
    world.request({ type: 'balance' }, id, { state: 'done', finishedAtMs: index })
  }
  world.converge()
  const kept = [...world.state.rebalances.keys()].sort()
  assert.equal(kept.length, REBALANCES_KEPT)
  assert.equal(kept[0], 'b005')
})
