/** The rebalancer's machine, rule by rule: balance, targets that die, deadlines, evictions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberName } from '../../src/core/ids.ts'
import { MOVE_REWRITES_MAX } from '../../src/core/partition-record.ts'
import type { RebalancerAction } from '../../src/core/rebalancer-state.ts'
import { RebalancerWorld } from './rebalancer-world.ts'

const SETTLE_MS = 1000

function commits(actions: readonly RebalancerAction[]) {
  return actions.flatMap((action) => (action.type === 'commit' ? [action.commit] : []))
}

/** a owns everything, b has just joined. */
function unbalanced(settings = {}): RebalancerWorld {
  const world = new RebalancerWorld(settings)
  world.join('a')
  world.own('a', ...world.partitions())
  world.join('b')
  return world
}

test('a balance, before the settle delay has passed, asks for nothing and wakes at its end', () => {
  const world = unbalanced()
  const step = world.elect()
  assert.deepEqual(step.actions, [])
  assert.equal(step.wakeAtMs, SETTLE_MS)
})

test('a balance, after quiet, revokes what must move and compares its own election', () => {
  const world = unbalanced()
  world.elect()
  world.nowMs = SETTLE_MS
  const { actions, state } = world.step({ type: 'wake' })
  assert.deepEqual(actions[0], { type: 'plan-made', reason: 'balance', moves: 6 })
  const sent = commits(actions)
  assert.equal(sent.length, 6)
  for (const { requires, next, partition } of sent) {
    assert.deepEqual(requires, [{ type: 'rebalancer', session: state.session }])
    assert.equal(next.phase, 'revoking')
    assert.equal(next.phase === 'revoking' && next.move.to, 'b')
    assert.equal(next.phase === 'revoking' && next.move.reason, 'balance')
    assert.equal(next.generation, world.state.record(partition)?.record.generation)
  }
})

test('a balance, when a member joins meanwhile, waits for quiet again', () => {
  const world = unbalanced()
  world.elect()
  world.nowMs = 600
  world.join('c')
  world.step()
  world.nowMs = SETTLE_MS
  assert.deepEqual(world.step({ type: 'wake' }).actions, [])
  assert.equal(world.wakeAtMs, 600 + SETTLE_MS)
})

test('a balance, of a balanced group, does nothing and asks to be woken for nothing', () => {
  const world = new RebalancerWorld()
  world.join('a')
  world.join('b')
  world.own('a', 0, 1, 2, 3, 4, 5)
  world.own('b', 6, 7, 8, 9, 10, 11)
  world.perform(world.elect())
  world.advance(10_000)
  assert.deepEqual(world.log, [])
  assert.equal(world.wakeAtMs, null)
})

test('a balance, while the group is frozen, waits; after the freeze it is made', () => {
  const world = unbalanced()
  world.mark(world.keys.freeze)
  world.perform(world.elect())
  world.advance(60_000)
  assert.deepEqual(world.log, [])
  world.remove(world.keys.freeze)
  world.converge()
  assert.deepEqual(world.counts(), { a: 6, b: 6 })
})

test('a freeze, past the time until which it was set, is lifted by the rebalancer', () => {
  const world = unbalanced()
  world.mark(world.keys.freeze, 1_764_440_000_000 + 30_000)
  world.perform(world.elect())
  world.advance(29_000)
  assert.notEqual(world.state.freeze, null)
  world.advance(2000)
  assert.equal(world.state.freeze, null)
})

test('a balance, when a weight, a cordon or a disabled partition changes it, moves just the difference', () => {
  const world = unbalanced()
  world.perform(world.elect())
  world.converge()
  const settled = world.owners()
  world.mark(world.keys.cordon(memberName('b')))
  world.converge()
  assert.deepEqual(world.owners(), settled)
  world.remove(world.keys.cordon(memberName('b')))
  world.join('c', { weight: 2 })
  world.converge()
  assert.deepEqual(world.counts(), { a: 3, b: 3, c: 6 })
})

test('vacant partitions are never moved or granted by the rebalancer, and planned for again', () => {
  const world = unbalanced()
  world.die('a')
  world.perform(world.elect())
  world.advance(20_000)
  assert.deepEqual(commits(world.log), [])
  world.own('b', ...world.partitions())
  world.converge()
  assert.deepEqual(commits(world.log), [])
})

test('members that leave or are being evicted keep their partitions: they give them up themselves', () => {
  const world = new RebalancerWorld()
  world.join('a', { state: 'leaving' })
  world.own('a', 0, 1, 2)
  world.join('b')
  world.own('b', 3, 4, 5)
  world.mark(world.keys.eviction(memberName('b')), null, world.sessionOf('b'))
  world.join('c')
  world.perform(world.elect())
  world.advance(3000)
  assert.deepEqual(commits(world.log), [])
})

test('a pending move, of which the target died, is retargeted to a member that lives', () => {
  const world = unbalanced()
  world.perform(world.elect())
  world.advance(SETTLE_MS)
  assert.equal(world.revoking().length, 6)
  world.join('c')
  world.die('b')
  const { actions } = world.step()
  const sent = commits(actions)
  assert.equal(sent.length, 6)
  for (const { next } of sent) {
    assert.equal(next.phase === 'revoking' && next.move.to, 'c')
    assert.equal(next.phase === 'revoking' && next.move.rewrites, 1)
    assert.equal(next.phase === 'revoking' && next.owner.member, 'a')
  }
})

test('a pending move, retargeted as often as allowed, raises an alarm once and is left alone', () => {
  const world = unbalanced()
  world.perform(world.elect())
  world.advance(SETTLE_MS)
  const names = ['c', 'd']
  for (let rewrites = 0; rewrites <= MOVE_REWRITES_MAX; rewrites += 1) {
    const next = names[rewrites % 2] ?? ''
    world.join(next)
    world.die(rewrites === 0 ? 'b' : (names[(rewrites + 1) % 2] ?? ''))
    world.turn()
  }
  world.turn()
  const alarms = world.log.filter(({ type }) => type === 'alarm')
  assert.equal(alarms.length, 6)
  for (const partition of world.revoking()) {
    const record = world.state.record(partition)?.record
    assert.equal(record?.phase === 'revoking' && record.move.rewrites, MOVE_REWRITES_MAX)
  }
})

test('an overdue drain, under wait, raises one alarm and changes nothing', () => {
  const world = unbalanced({ drain: { deadlineMs: 5000 } })
  world.perform(world.elect())
  world.advance(SETTLE_MS)
  const before = world.revoking().map((p) => world.state.record(p)?.raw)
  world.advance(60_000)
  const alarms = world.log.filter((action) => action.type === 'alarm')
  assert.equal(alarms.length, 6)
  assert.ok(alarms.every((alarm) => alarm.code === 'drain-overdue'))
  assert.deepEqual(
    world.revoking().map((p) => world.state.record(p)?.raw),
    before,
  )
})

test('an overdue drain, in a fenced group, is forced to the target after the head start of the owner', () => {
  const world = unbalanced({ fenced: true, drain: { deadlineMs: 5000 } })
  world.perform(world.elect())
  world.advance(SETTLE_MS)
  const [partition = 0] = world.revoking()
  const generation = world.state.record(partition)?.record.generation ?? 0
  world.nowMs = SETTLE_MS + 5499
  assert.deepEqual(commits(world.step({ type: 'wake' }).actions), [])
  world.nowMs = SETTLE_MS + 5500
  const forced = commits(world.step({ type: 'wake' }).actions)
  assert.equal(forced.length, 6)
  const [first] = forced
  assert.equal(first?.next.phase === 'owned' && first.next.how, 'forced')
  assert.equal(first?.next.phase === 'owned' && first.next.owner.member, 'b')
  assert.equal(first?.next.generation, generation + 1)
  const kinds = first?.requires.map(({ type }) => type)
  assert.deepEqual(kinds?.slice(0, 2), ['rebalancer', 'session-alive'])
})

test('an overdue drain, in a fenced group without a live grantee, leaves the record vacant', () => {
  const world = unbalanced({ fenced: true, drain: { deadlineMs: 5000 } })
  world.perform(world.elect())
  world.advance(SETTLE_MS)
  world.die('b')
  world.nowMs += 5500
  world.turn()
  const phases = world.partitions().map((p) => world.state.record(p)?.record.phase)
  assert.equal(phases.filter((phase) => phase === 'vacant').length, 6)
})

test('an overdue drain, under evict, marks the owner, waits T, then closes its lease', () => {
  const world = unbalanced({ drain: { deadlineMs: 5000, policy: 'evict' } })
  world.perform(world.elect())
  world.advance(SETTLE_MS)
  const session = world.sessionOf('a')
  world.advance(5500)
  assert.deepEqual([...world.state.evictions.keys()], ['a'])
  world.advance(5990)
  assert.equal(world.log.filter(({ type }) => type === 'close-lease').length, 0)
  world.advance(20)
  const closes = world.log.filter((action) => action.type === 'close-lease')
  assert.deepEqual(
    closes.map((close) => ({ member: close.member, session: close.session })),
    [{ member: 'a', session }],
  )
  assert.deepEqual(world.owners(), new Array(12).fill(null))
  assert.equal(world.log.filter(({ type }) => type === 'eviction-closed').length, 1)
})

test('a successor, of a rebalancer that marked an eviction, waits its own T from its first sight', () => {
  const world = unbalanced()
  world.mark(world.keys.eviction(memberName('a')), null, world.sessionOf('a'))
  world.perform(world.elect())
  world.advance(5000)
  world.perform(world.succeed())
  world.advance(5990)
  assert.equal(world.log.filter(({ type }) => type === 'close-lease').length, 0)
  world.advance(20)
  assert.equal(world.log.filter(({ type }) => type === 'close-lease').length, 1)
})

test('a successor sees pending moves at once and counts their deadline from its first sight', () => {
  const world = unbalanced({ drain: { deadlineMs: 5000 } })
  world.perform(world.elect())
  world.advance(SETTLE_MS + 4000)
  const step = world.succeed()
  assert.equal(step.state.moves.size, 6)
  world.perform(step)
  world.advance(4999)
  assert.equal(world.log.filter(({ type }) => type === 'alarm').length, 0)
  world.advance(1)
  assert.equal(world.log.filter(({ type }) => type === 'alarm').length, 6)
})

test('a deposed rebalancer changes no record: its commits are refused by its election', () => {
  const world = unbalanced()
  world.perform(world.elect())
  world.nowMs = SETTLE_MS
  const step = world.step({ type: 'wake' })
  const deposed = commits(step.actions)
  assert.equal(deposed.length, 6)
  world.succeed()
  for (const commit of deposed) assert.equal(world.commit(commit), false)
  assert.equal(world.revoking().length, 0)
})

test('a revoke of which the answer is lost rests, then the map decides, and nothing is asked twice', () => {
  const world = unbalanced()
  world.elect()
  world.nowMs = SETTLE_MS
  const sent = commits(world.step({ type: 'wake' }).actions)
  // Unknown outcome, and the map shows nothing of it.
  const partitions = sent.map(({ partition }) => partition)
  assert.deepEqual(commits(world.step({ type: 'answered', partitions }).actions), [])
  // It lands late.
  for (const commit of sent) assert.equal(world.commit(commit), true)
  assert.deepEqual(commits(world.step().actions), [])
  world.converge()
  assert.deepEqual(world.counts(), { a: 6, b: 6 })
  assert.equal(commits(world.log).length, 6)
})

test('a group that is disabled as a whole has no moves', () => {
  const world = unbalanced()
  world.mark(world.keys.disabledGroup)
  world.perform(world.elect())
  world.advance(10_000)
  assert.deepEqual(commits(world.log), [])
})
