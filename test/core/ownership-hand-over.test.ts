/**
 * Plan: draining, handing over and halting; each event that matters there, whole steps.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit, StoredRecord } from '../../src/core/commit.ts'
import { force, halt, handOver, vacate } from '../../src/core/commit.ts'
import type { As, OwnershipEvent, Seat } from '../../src/core/ownership-state.ts'
import {
  ALONE,
  after,
  asks,
  at,
  B,
  becomes,
  C,
  CONTEXT,
  DRAINING,
  GRANT,
  halted,
  ME,
  NOW_MS,
  OPERATION,
  owned,
  PARTITION,
  revoking,
  seat,
  step,
  unchanged,
  vacant,
} from './ownership-cases.ts'

const { stamp } = CONTEXT
const RISEN = { ...CONTEXT, incarnation: 2 }
const FENCED = { ...CONTEXT, fenced: true, drainPolicy: 'fence' } as const
const DEAD = { ...CONTEXT, me: null }
const DRAINED = { type: 'drained' } as const

function sends(commit: Commit, purpose: 'hand-over' | 'halt' = 'hand-over') {
  return { type: 'commit', commit, purpose } as const
}
function released(to: typeof B | null) {
  return { type: 'release', to: to?.member ?? null, drainMs: 1000, handOffMs: 500 } as const
}

// Draining.

test('ownership, drained, grants to the target in one commit', () => {
  const commit = handOver(PARTITION, revoking(B), B, 1, stamp)
  assert.deepEqual(
    step(seat(DRAINING), DRAINED),
    becomes({ ...HANDING, commit, sentAtMs: NOW_MS }, [sends(commit)]),
  )
})

test('ownership, drained for a grantee that is dead, vacates', () => {
  const commit = vacate(PARTITION, revoking(B), stamp)
  assert.deepEqual(
    step(seat(DRAINING), DRAINED, ALONE),
    becomes({ ...HANDING, commit, sentAtMs: NOW_MS }, [sends(commit)]),
  )
})

test('ownership, drained under a map behind the record, vacates', () => {
  const taken = step(seat(DRAINING), DRAINED, { ...CONTEXT, incarnation: 0 })
  assert.equal(taken.seat.now.status, 'handing-over')
  assert.deepEqual(taken.actions, [sends(vacate(PARTITION, revoking(B), stamp))])
})

test('ownership, retargeted or cancelled while draining, follows the last target', () => {
  for (const to of [C, ME, null]) {
    const stored = revoking(to, {}, 1)
    const giveUp = { to: to?.member ?? null, reason: 'balance' } as const
    assert.deepEqual(
      step(seat(DRAINING), { type: 'seen', stored }),
      becomes({ ...DRAINING, stored, giveUp }, []),
    )
  }
})

test('ownership, cancelled to me, finishes the drain and grants me the next generation', () => {
  const stored = revoking(ME, {}, 1)
  const giveUp = { to: ME.member, reason: 'balance' } as const
  const commit = handOver(PARTITION, stored, ME, 1, stamp)
  assert.equal(commit.next.generation, 4)
  const sent = step(seat({ ...DRAINING, stored, giveUp }), DRAINED)
  const handing = { ...HANDING, stored, giveUp, commit, sentAtMs: NOW_MS }
  assert.deepEqual(sent, becomes(handing, [sends(commit)]))
  const grant = { ...GRANT, generation: 4, how: 'hand-over' } as const
  assert.deepEqual(
    step(sent.seat, { type: 'committed', operation: OPERATION }, CONTEXT, NOW_MS + 500),
    becomes(
      { status: 'acquiring', grant, stored: after(commit), overdueAtMs: NOW_MS + 2500 },
      [released(ME), { type: 'begin', grant }],
      at(4),
    ),
  )
})

test('ownership, draining by my own will, takes up the target of a revoke', () => {
  const own = { ...DRAINING, stored: owned(), giveUp: { to: null, reason: 'leave' } } as const
  assert.deepEqual(step(seat(own), { type: 'seen', stored: owned() }), becomes(own, []))
  assert.deepEqual(step(seat(own), { type: 'seen', stored: revoking(B) }), becomes(DRAINING, []))
})

test('ownership, draining, ignores what changes nothing', () => {
  const events: OwnershipEvent[] = [
    { type: 'acquired' },
    { type: 'acquire-failed', to: null },
    { type: 'give-up', giveUp: { to: null, reason: 'leave' } },
    { type: 'heard-higher', position: at(3) },
  ]
  for (const event of events) {
    assert.deepEqual(step(seat(DRAINING), event), unchanged(seat(DRAINING), 50_000))
  }
})

test('ownership, drain overdue under wait, raises the alarm once and waits', () => {
  const waiting = { ...DRAINING, overdueAtMs: null }
  assert.deepEqual(
    step(seat(DRAINING), { type: 'wake' }),
    becomes(waiting, [{ type: 'drain-overdue', policy: 'wait' }]),
  )
  assert.deepEqual(step(seat(waiting), { type: 'wake' }), unchanged(seat(waiting)))
  assert.deepEqual(
    step(seat(DRAINING), { type: 'wake' }, CONTEXT, NOW_MS - 1),
    unchanged(seat(DRAINING), 50_000),
  )
})

test('ownership, drain overdue under evict, ends the session', () => {
  assert.deepEqual(
    step(seat(DRAINING), { type: 'wake' }, { ...CONTEXT, drainPolicy: 'evict' }),
    becomes({ ...DRAINING, overdueAtMs: null }, [
      { type: 'drain-overdue', policy: 'evict' },
      { type: 'end-session' },
    ]),
  )
})

test('ownership, drain overdue under fence, is lost and forced to the target', () => {
  const alive = { type: 'session-alive', ...ME } as const
  const commit = force(PARTITION, revoking(B), B, 1, alive, stamp)
  assert.deepEqual(
    step(seat(DRAINING), { type: 'wake' }, FENCED),
    becomes({ ...HANDING, ending: 'forced', commit, sentAtMs: NOW_MS }, [
      { type: 'drain-overdue', policy: 'fence' },
      { type: 'lose', why: 'forced' },
      sends(commit),
    ]),
  )
})

test('ownership, drain overdue under fence with nobody to take it, vacates', () => {
  const taken = step(seat(DRAINING), { type: 'wake' }, { ...FENCED, granteeOf: () => null })
  assert.deepEqual(taken.actions.at(-1), sends(vacate(PARTITION, revoking(B), stamp)))
})

test('ownership, drain overdue under fence in a group that is not fenced, only waits', () => {
  assert.deepEqual(
    step(seat(DRAINING), { type: 'wake' }, { ...FENCED, fenced: false }),
    becomes({ ...DRAINING, overdueAtMs: null }, [{ type: 'drain-overdue', policy: 'wait' }]),
  )
})

test('ownership, forced by the rebalancer while draining, is lost once confirmed', () => {
  const stored = owned({ owner: B, generation: 4 })
  const asked = { ...seat(DRAINING), asked: OPERATION }
  assert.deepEqual(step(seat(DRAINING), { type: 'seen', stored }), asks(seat(DRAINING), 50_000))
  assert.deepEqual(
    step(seat(DRAINING), { type: 'heard-higher', position: at(4) }),
    asks(seat(DRAINING), 50_000),
  )
  assert.deepEqual(
    step(asked, { type: 'confirmed', id: OPERATION, stored }),
    becomes({ status: 'absent' }, [{ type: 'lose', why: 'superseded' }]),
  )
  assert.deepEqual(
    step(asked, { type: 'confirmed', id: OPERATION, stored: revoking(B) }),
    becomes(DRAINING, []),
  )
})

// Handing over: the commit grants B generation 4.

const COMMIT = handOver(PARTITION, revoking(B), B, 1, { ...stamp, operation: 'grant' as never })
const HANDING: As<'handing-over'> = {
  status: 'handing-over',
  grant: GRANT,
  stored: revoking(B),
  giveUp: { to: B.member, reason: 'balance' },
  ending: 'drained',
  commit: COMMIT,
  drainMs: 1000,
  sentAtMs: NOW_MS - 500,
}
const ANSWERED = { operation: 'grant' } as const
const ASKING: Seat = { ...seat(HANDING), asked: OPERATION }

test('ownership, handed over, is released, however it hears of it', () => {
  const stored = after(COMMIT)
  const done = becomes({ status: 'absent' }, [released(B)])
  assert.deepEqual(step(seat(HANDING), { type: 'committed', ...ANSWERED }), done)
  assert.deepEqual(step(seat(HANDING), { type: 'seen', stored }), done)
  assert.deepEqual(step(seat(HANDING), { type: 'refused', ...ANSWERED, stands: stored }), done)
  assert.deepEqual(step(ASKING, { type: 'confirmed', id: OPERATION, stored }), done)
})

test('ownership, hand-over overtaken by a forced move, is released all the same', () => {
  const stored = owned({ owner: C, generation: 4 })
  const done = becomes({ status: 'absent' }, [released(C)])
  assert.deepEqual(step(seat(HANDING), { type: 'seen', stored }), done)
  assert.deepEqual(step(ASKING, { type: 'confirmed', id: OPERATION, stored }), done)
  assert.deepEqual(step(seat(HANDING), { type: 'refused', ...ANSWERED, stands: stored }), done)
})

test('ownership, hand-over reply lost, is read and sent again only on the same value', () => {
  assert.deepEqual(step(seat(HANDING), { type: 'unsettled', ...ANSWERED }), asks(seat(HANDING)))
  assert.deepEqual(
    step(ASKING, { type: 'confirmed', id: OPERATION, stored: revoking(B) }),
    becomes(HANDING, [sends(COMMIT)]),
  )
})

function sendsAnew(stored: StoredRecord, commit: Commit, giveUp = HANDING.giveUp) {
  return becomes({ ...HANDING, stored, giveUp, commit }, [sends(commit)])
}

test('ownership, hand-over refused because the grantee died, vacates', () => {
  const commit = vacate(PARTITION, revoking(B), stamp)
  const anew = sendsAnew(revoking(B), commit)
  assert.deepEqual(step(seat(HANDING), { type: 'refused-all', ...ANSWERED }), anew)
  assert.deepEqual(step(seat(HANDING), { type: 'refused', ...ANSWERED, stands: revoking(B) }), anew)
})

test('ownership, hand-over refused because the move was retargeted, follows it', () => {
  const stands = revoking(C, {}, 1)
  const commit = handOver(PARTITION, stands, C, 1, stamp)
  const anew = sendsAnew(stands, commit, { to: C.member, reason: 'balance' })
  assert.deepEqual(step(seat(HANDING), { type: 'refused', ...ANSWERED, stands }), anew)
  assert.deepEqual(step(ASKING, { type: 'confirmed', id: OPERATION, stored: stands }), anew)
})

test('ownership, forced hand-over sent anew, stays a forced one', () => {
  const stands = revoking(C, {}, 1)
  const forced = seat({ ...HANDING, ending: 'forced' })
  const taken = step(forced, { type: 'refused', ...ANSWERED, stands }, FENCED)
  const alive = { type: 'session-alive', ...ME } as const
  assert.deepEqual(taken.actions, [sends(force(PARTITION, stands, C, 1, alive, stamp))])
})

test('ownership, hand-over that ended unused or by force, ends without a release', () => {
  for (const ending of ['unused', 'forced'] as const) {
    assert.deepEqual(
      step(seat({ ...HANDING, ending }), { type: 'committed', ...ANSWERED }, FENCED),
      becomes({ status: 'absent' }, []),
    )
  }
})

test('ownership, self-grant and the next revoke seen as one change, hands over again', () => {
  const stored = revoking(C, { generation: 4 })
  const taken = step(seat(HANDING), { type: 'seen', stored })
  const commit = handOver(PARTITION, stored, C, 1, stamp)
  assert.deepEqual(taken.actions, [released(ME), sends(commit)])
  assert.deepEqual(taken.seat.highest, at(4))
})

test('ownership, handing over, halted meanwhile or found restored, is released', () => {
  assert.deepEqual(
    step(ASKING, { type: 'confirmed', id: OPERATION, stored: halted() }),
    becomes({ status: 'absent' }, [released(ME)]),
  )
  const stored = owned({ generation: 2 })
  const commit = halt(PARTITION, stored, ME, 'fence-ahead', stamp)
  assert.deepEqual(
    step(ASKING, { type: 'confirmed', id: OPERATION, stored }),
    becomes({ status: 'halting', grant: { ...GRANT, generation: 2 }, commit, highest: at(3) }, [
      released(ME),
      sends(commit, 'halt'),
    ]),
  )
})

test('ownership, session ended while handing over, is released: the drain was done', () => {
  assert.deepEqual(
    step(seat(HANDING), { type: 'session-ended' }, DEAD),
    becomes({ status: 'absent' }, [released(null)]),
  )
})

test('ownership, handing over, ignores answers to other commits and older news', () => {
  const operation = 'another'
  const events: OwnershipEvent[] = [
    { type: 'committed', operation },
    { type: 'refused', operation, stands: null },
    { type: 'refused-all', operation },
    { type: 'unsettled', operation },
    { type: 'seen', stored: owned() },
    { type: 'seen', stored: null },
    { type: 'drained' },
    { type: 'give-up', giveUp: { to: null, reason: 'leave' } },
    { type: 'wake' },
  ]
  for (const event of events) {
    assert.deepEqual(step(seat(HANDING), event), unchanged(seat(HANDING)))
  }
})

// Halting.

const HALT = halt(PARTITION, owned(), ME, 'fence-ahead', { ...stamp, operation: 'mark' as never })
const HALTING = seat({ status: 'halting', grant: GRANT, commit: HALT, highest: at(9) })
const MARKED = { operation: 'mark' } as const
const MARKING: Seat = { ...HALTING, asked: OPERATION }

test('ownership, halted, raises the alarm, however it hears of it', () => {
  const stored = after(HALT)
  const done = becomes({ status: 'absent' }, [{ type: 'fence-ahead', highest: at(9) }])
  assert.deepEqual(step(HALTING, { type: 'committed', ...MARKED }), done)
  assert.deepEqual(step(HALTING, { type: 'seen', stored }), done)
  assert.deepEqual(step(HALTING, { type: 'refused', ...MARKED, stands: stored }), done)
  assert.deepEqual(step(MARKING, { type: 'confirmed', id: OPERATION, stored }), done)
})

test('ownership, halting a record that moved on, lets go without an alarm', () => {
  for (const stands of [owned({ owner: B, generation: 4 }), vacant(), null]) {
    assert.deepEqual(
      step(HALTING, { type: 'refused', ...MARKED, stands }),
      becomes({ status: 'absent' }, []),
    )
  }
})

test('ownership, halting a record that was retargeted meanwhile, marks it all the same', () => {
  const stands = revoking(C, {}, 1)
  const commit = halt(PARTITION, stands, ME, 'fence-ahead', stamp)
  assert.deepEqual(
    step(HALTING, { type: 'refused', ...MARKED, stands }),
    becomes({ status: 'halting', grant: GRANT, commit, highest: at(9) }, [sends(commit, 'halt')]),
  )
})

test('ownership, halting while the incarnation rises, moves on instead', () => {
  const stands = revoking(C, {}, 1)
  const taken = step(HALTING, { type: 'refused', ...MARKED, stands }, RISEN)
  assert.deepEqual(taken.actions, [sends(handOver(PARTITION, stands, C, 2, stamp))])
})

test('ownership, mark of unknown outcome, is read and sent again only on the same value', () => {
  assert.deepEqual(step(HALTING, { type: 'unsettled', ...MARKED }), asks(HALTING))
  assert.deepEqual(step(MARKING, { type: 'confirmed', id: OPERATION, stored: owned() }), {
    seat: HALTING,
    actions: [sends(HALT, 'halt')],
    wakeAtMs: null,
  })
})

test('ownership, mark refused for want of a session, waits for its end', () => {
  const gone = becomes({ status: 'absent' }, [])
  assert.deepEqual(step(HALTING, { type: 'refused-all', ...MARKED }), gone)
  assert.deepEqual(step(HALTING, { type: 'refused', ...MARKED, stands: owned() }), gone)
  assert.deepEqual(step(HALTING, { type: 'session-ended' }, DEAD), gone)
})

test('ownership, halting, ignores answers to other commits and older news', () => {
  const operation = 'another'
  const events: OwnershipEvent[] = [
    { type: 'committed', operation },
    { type: 'refused', operation, stands: null },
    { type: 'refused-all', operation },
    { type: 'unsettled', operation },
    { type: 'seen', stored: owned() },
    { type: 'drained' },
  ]
  for (const event of events) assert.deepEqual(step(HALTING, event), unchanged(HALTING))
})
