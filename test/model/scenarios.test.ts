/**
 * Plan: the traces that broke an earlier wording of the protocol, each led along by hand in the composed
 * world, up to the step at which the production machines now refuse or repair. Here: sessions, elections,
 * hand-overs and evictions; restored stores are in `scenarios-restore.test.ts`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingsOf } from './settings.ts'
import { Walk } from './walk.ts'

const A = 0
const B = 1
const EVICTING = {
  ...{ planner: 'machine' as const, rebalancers: 2 },
  ...{ timed: true, wedged: true, policy: 'evict' as const },
}
const TICK = 'a third of T passes'

test('V5: a token that was given up is not acquired again on the strength of an old read', () => {
  const walk = new Walk(settingsOf({ leaves: 1, lost: 1, late: 1 }))
  walk.go(
    'a: gives up (p0)',
    'a: drained, its map shows-nobody (p0)',
    'a: vacant 1.1 (p0) times out',
    'a: store answers confirm, the reply is on its way',
    'a: vacant 1.1 (p0) lands late',
    'a: map shows vacant 1.1 (p0)',
  )
  assert.equal(walk.holds(A), 'absent')
  walk.go('a: hears confirmed late')
  assert.equal(walk.holds(A), 'absent')
  walk.cannot('a: acquired (p0)')
})

test('V7: an evicted owner of two partitions keeps its lease until its deadline has passed', () => {
  const walk = markedWalk({ orders: 1, stalls: 1, work: 1 }, 2)
  assert.equal(walk.isLive(A), true)
  walk.cannot('rebalancer 1: closes the lease of session 101')
  walk.go(TICK, TICK)
  walk.cannot('rebalancer 1: closes the lease of session 101')
  walk.go(TICK, 'rebalancer 1 wakes')
  assert.equal(walk.isLive(A), false, 'its deadline has passed')
  walk.go(
    'rebalancer 1: closes the lease of session 101',
    'b: campaigns (p1)',
    'b: owned 1.2 (p1) done',
    'b: acquired (p1)',
  )
  assert.equal(walk.holds(B, 1), 'serving 1.2')
})

test('V8: a successor waits its own T, and the late close of a deposed rebalancer harms nobody', () => {
  const walk = markedWalk({ orders: 1, stalls: 1, work: 1, depositions: 1 })
  walk.go(TICK, TICK, TICK, 'rebalancer 1 wakes', 'rebalancer 1 is deposed')
  walk.go('rebalancer 2 is elected')
  walk.cannot('rebalancer 2: closes the lease of session 101', 'rebalancer 2 wakes')
  assert.equal(walk.isLive(A), false)
  walk.go('rebalancer 1: closes the lease of session 101')
  walk.go('b: map shows revoking 1.1 (p0)', 'b: campaigns (p0)', 'b: owned 1.2 (p0) done')
  walk.go('b: acquired (p0)')
  assert.equal(walk.holds(B), 'serving 1.2')
})

test('V9: a marked session ends without any rebalancer, and the election decides', () => {
  const walk = markedWalk({ orders: 1, stalls: 1, work: 1, depositions: 1 })
  walk.go('rebalancer 1 is deposed', 'a: its rounds get through again', TICK)
  assert.equal(walk.isLive(A), false, 'its proof finds the mark')
  walk.go('store: the session of a ends', 'b: map shows revoking 1.1 (p0)', 'b: campaigns (p0)')
  walk.go('b: owned 1.2 (p0) done', 'b: acquired (p0)')
  assert.equal(walk.holds(B), 'serving 1.2')
})

/** The move of p0 to b overran its drain, and the rebalancer has marked a, whose rounds fail meanwhile. */
function markedWalk(budget: Parameters<typeof settingsOf>[0], partitions = 1): Walk {
  const walk = new Walk(settingsOf(budget, { ...EVICTING, partitions }))
  walk.go('a: work begins (p0)', 'rebalancer 1 is elected', 'operator: orders p0 to b')
  walk.go('rebalancer 1 sees what stands')
  while (walk.record()?.phase !== 'revoking') {
    const sent = sentBy(walk)
    assert.ok(sent !== undefined, 'the rebalancer sends something')
    walk.go(sent)
  }
  for (let sent = sentBy(walk); sent !== undefined; sent = sentBy(walk)) walk.go(sent)
  walk.go(TICK, 'a third of T passes, the round of a fails', 'rebalancer 1 wakes')
  walk.go('rebalancer 1: its evict reaches the store')
  return walk
}

function sentBy(walk: Walk): string | undefined {
  return walk.labels().find((label) => /^rebalancer 1: .* reaches the store/.test(label))
}

test('V10: who closes its session takes up nothing that it won and had not heard of', () => {
  const walk = new Walk(settingsOf({ late: 1, closes: 1 }, { start: 'empty' }))
  walk.go('a: campaigns (p0)', 'a: owned 1.1 (p0) done, the reply is on its way')
  walk.go('a: ends its session', 'a: hears committed late')
  assert.equal(walk.holds(A), 'absent')
  walk.go('store: the session of a ends', 'b: map shows owned 1.1 (p0)', 'b: campaigns (p0)')
  walk.go('b: owned 1.2 (p0) done', 'b: acquired (p0)')
  assert.equal(walk.holds(B), 'serving 1.2')
})

test('V11: a wedged drain in a fenced group is forced by its owner, with no rebalancer', () => {
  const walk = new Walk(settingsOf({ leaves: 1, work: 1 }, { fenced: true, wedged: true }))
  walk.go('a: work begins (p0)', 'a: gives up (p0)')
  walk.cannot('a: drained, its map shows-the-dead (p0)')
  walk.go('a: drain overruns (p0)', 'a: owned 1.2 (p0) done')
  assert.equal(walk.stands(), 'owned 1.2 b')
  walk.go('b: map shows owned 1.2 (p0)', 'b: acquired (p0)')
  assert.equal(walk.holds(B), 'serving 1.2')
})

test('V11: where no grantee lives, the owner vacates by force and may win it again', () => {
  const walk = new Walk(
    settingsOf({ leaves: 1, work: 1, expiries: 1 }, { fenced: true, wedged: true }),
  )
  walk.go('a: work begins (p0)', 'b: its deadline passes', 'store: the session of b ends')
  walk.go('a: gives up (p0)', 'a: drain overruns (p0)', 'a: owned 1.2 (p0) refused')
  walk.go('a: vacant 1.1 (p0) done', 'a: campaigns (p0)', 'a: owned 1.2 (p0) done')
  assert.equal(walk.holds(A), 'acquiring 1.2')
})

test('V11: under evict the owner ends its own session', () => {
  const walk = new Walk(settingsOf({ leaves: 1, work: 1 }, { wedged: true, policy: 'evict' }))
  walk.go('a: work begins (p0)', 'a: gives up (p0)', 'a: drain overruns (p0)')
  assert.equal(walk.isLive(A), false)
  walk.go('store: the session of a ends', 'b: campaigns (p0)', 'b: owned 1.2 (p0) done')
  assert.equal(walk.stands(), 'owned 1.2 b')
})

test('V12: a process whose name another one holds waits for the key to be absent', () => {
  const walk = new Walk(settingsOf({ expiries: 1, sessions: 1 }, { processes: ['a', 'b', 'a'] }))
  walk.cannot("a': opens a session")
  walk.go('a: its deadline passes', 'a: sees that its deadline has passed')
  walk.cannot("a': opens a session", 'a: opens a session')
  walk.go('store: the session of a ends', "a': opens a session")
  walk.cannot('a: opens a session')
})
