/**
 * Plan: absent, campaigning, acquiring and serving; each event that matters there, whole steps. The end of
 * a grant is in `ownership-hand-over.test.ts`, interleavings in `test/model`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit } from '../../src/core/commit.ts'
import { elect, halt, handOver, vacate } from '../../src/core/commit.ts'
import type { OwnershipEvent, Seat } from '../../src/core/ownership-state.ts'
import {
  ACQUIRING,
  absent,
  after,
  asks,
  at,
  B,
  becomes,
  CONTEXT,
  commitOf,
  DRAINING,
  GRANT,
  halted,
  ME,
  NEVER,
  NOW_MS,
  OPERATION,
  owned,
  PARTITION,
  REBORN,
  revoking,
  SERVING,
  SETTLING,
  seat,
  step,
  unchanged,
  vacant,
} from './ownership-cases.ts'

const { stamp } = CONTEXT
const RISEN = { ...CONTEXT, incarnation: 2 }
const DEAD = { ...CONTEXT, me: null }

const BEGUN = {
  status: 'acquiring',
  overdueAtMs: NOW_MS + 2000,
} as const

function lost(why: 'superseded' | 'session-ended' | 'halted' | 'acquire-overdue') {
  return { type: 'lose', why } as const
}
function sends(commit: Commit, purpose: 'campaign' | 'hand-over' | 'halt') {
  return { type: 'commit', commit, purpose } as const
}

// Absent.

test('ownership, absent, campaigns for what was never granted', () => {
  const commit = elect(PARTITION, null, ME, 1, stamp)
  assert.deepEqual(
    step(NEVER, { type: 'campaign', stored: null }),
    becomes({ status: 'campaigning', commit }, [sends(commit, 'campaign')], NEVER.highest),
  )
})

test('ownership, absent without a session, does nothing', () => {
  const events: OwnershipEvent[] = [
    { type: 'campaign', stored: null },
    { type: 'seen', stored: owned({ generation: 4 }) },
  ]
  for (const event of events) assert.deepEqual(step(absent(), event, DEAD), unchanged(absent()))
})

test('ownership, absent, does not campaign for a halted partition until the incarnation rose', () => {
  const stored = halted({ owner: B })
  assert.deepEqual(step(absent(), { type: 'campaign', stored }), unchanged(absent()))
  const commit = elect(PARTITION, stored, ME, 2, stamp)
  assert.deepEqual(
    step(absent(), { type: 'campaign', stored }, RISEN),
    becomes({ status: 'campaigning', commit }, [sends(commit, 'campaign')]),
  )
})

test('ownership, absent, does not campaign on a record beyond the incarnation that it knows', () => {
  const stored = vacant({ incarnation: 2 })
  assert.deepEqual(step(absent(), { type: 'campaign', stored }), unchanged(absent()))
})

test('ownership, absent, adopts a grant above all it remembers', () => {
  const stored = owned({ generation: 4 })
  const grant = { ...GRANT, generation: 4 }
  for (const type of ['seen', 'confirmed'] as const) {
    const from: Seat = { ...absent(), asked: OPERATION }
    assert.deepEqual(
      step(from, { type, stored, id: OPERATION }),
      becomes({ ...BEGUN, grant, stored }, [{ type: 'begin', grant }], at(4)),
    )
  }
})

test('ownership, absent, skips a grant that is asked back already', () => {
  const stored = revoking(B, { generation: 4 })
  const commit = handOver(PARTITION, stored, B, 1, stamp)
  assert.deepEqual(
    step(absent(), { type: 'seen', stored }),
    becomes(
      {
        status: 'handing-over',
        grant: { ...GRANT, generation: 4 },
        stored,
        giveUp: { to: B.member, reason: 'balance' },
        ending: 'unused',
        commit,
        drainMs: 0,
        sentAtMs: NOW_MS,
      },
      [sends(commit, 'hand-over')],
      at(4),
    ),
  )
})

test('ownership, absent, ignores records of others, of an earlier session and halted ones', () => {
  for (const stored of [owned({ owner: B }), owned({ owner: REBORN }), vacant(), halted(), null]) {
    assert.deepEqual(step(absent(), { type: 'seen', stored }), unchanged(absent()))
  }
})

test('ownership, stale record that names me, is confirmed before anything else', () => {
  for (const generation of [2, 3]) {
    assert.deepEqual(
      step(absent(), { type: 'seen', stored: owned({ generation }) }),
      asks(absent()),
    )
  }
})

test('ownership, confirmed record at or below what I remember, is halted', () => {
  const asked = { ...absent(at(5)), asked: OPERATION }
  const stored = owned()
  const commit = halt(PARTITION, stored, ME, 'fence-ahead', stamp)
  assert.deepEqual(
    step(asked, { type: 'confirmed', id: OPERATION, stored }),
    becomes(
      { status: 'halting', grant: GRANT, commit, highest: at(5) },
      [sends(commit, 'halt')],
      at(5),
    ),
  )
})

test('ownership, confirmed by a read that nobody waits for, changes nothing', () => {
  const answers = { type: 'confirmed', id: 'earlier', stored: owned({ owner: B }) } as const
  for (const now of [ACQUIRING, SERVING, SETTLING, DRAINING]) {
    const from = { ...seat(now), asked: OPERATION }
    const wakeAtMs = 'overdueAtMs' in now ? now.overdueAtMs : null
    assert.deepEqual(step(from, answers), unchanged(from, wakeAtMs))
  }
  assert.deepEqual(step(absent(), answers), unchanged(absent()))
})

test('ownership, record of an older incarnation, is granted anew by its owner at once', () => {
  for (const [stored, highest] of [
    [owned(), at(2)],
    [owned(), at(5)],
    [halted(), at(3)],
  ] as const) {
    const commit = handOver(PARTITION, stored, ME, 2, stamp)
    assert.equal(commit.next.generation, 4)
    assert.deepEqual(
      step(absent(highest), { type: 'seen', stored }, RISEN),
      becomes(
        {
          status: 'handing-over',
          grant: GRANT,
          stored,
          giveUp: { to: ME.member, reason: 'incarnation' },
          ending: 'unused',
          commit,
          drainMs: 0,
          sentAtMs: NOW_MS,
        },
        [sends(commit, 'hand-over')],
        highest.generation > 3 ? highest : at(3),
      ),
    )
  }
})

// Campaigning: the commit replaces a vacant record of generation 3.

const CAMPAIGN = elect(PARTITION, vacant(), ME, 1, { ...stamp, operation: 'campaign' as never })
const CAMPAIGNING = seat({ status: 'campaigning', commit: CAMPAIGN })
const ANSWERED = { operation: 'campaign' } as const
const ASKING = { ...CAMPAIGNING, asked: OPERATION }
const WON = becomes(
  { ...BEGUN, grant: { ...GRANT, generation: 4 }, stored: after(CAMPAIGN) },
  [
    { type: 'campaign-ended', outcome: 'won' },
    { type: 'begin', grant: { ...GRANT, generation: 4 } },
  ],
  at(4),
)
const REFUSED = becomes({ status: 'absent' }, [{ type: 'campaign-ended', outcome: 'refused' }])

test('ownership, campaign won, acquires, however it hears of it', () => {
  const stored = after(CAMPAIGN)
  assert.deepEqual(step(CAMPAIGNING, { type: 'committed', ...ANSWERED }), WON)
  assert.deepEqual(step(CAMPAIGNING, { type: 'seen', stored }), WON)
  assert.deepEqual(step(CAMPAIGNING, { type: 'refused', ...ANSWERED, stands: stored }), WON)
  assert.deepEqual(step(ASKING, { type: 'confirmed', id: OPERATION, stored }), WON)
})

test('ownership, campaign refused, ends', () => {
  const stands = owned({ owner: B, generation: 4 })
  assert.deepEqual(step(CAMPAIGNING, { type: 'refused', ...ANSWERED, stands }), REFUSED)
  assert.deepEqual(step(CAMPAIGNING, { type: 'refused-all', ...ANSWERED }), REFUSED)
  assert.deepEqual(step(ASKING, { type: 'confirmed', id: OPERATION, stored: stands }), REFUSED)
})

test('ownership, campaign of unknown outcome, is read and sent again only on the same value', () => {
  assert.deepEqual(step(CAMPAIGNING, { type: 'unsettled', ...ANSWERED }), asks(CAMPAIGNING))
  assert.deepEqual(step(ASKING, { type: 'confirmed', id: OPERATION, stored: vacant() }), {
    seat: CAMPAIGNING,
    actions: [sends(CAMPAIGN, 'campaign')],
    wakeAtMs: null,
  })
})

test('ownership, campaign won and asked back in one look at the map, hands over at once', () => {
  const stored = revoking(B, { generation: 4 })
  const taken = step(CAMPAIGNING, { type: 'seen', stored })
  assert.equal(taken.seat.now.status, 'handing-over')
  assert.deepEqual(commitOf(taken).next.phase, 'owned')
  assert.deepEqual(taken.actions[0], { type: 'campaign-ended', outcome: 'won' })
})

test('ownership, campaigning, asks about a record that names me and is not new', () => {
  const stored = owned()
  assert.deepEqual(step(CAMPAIGNING, { type: 'seen', stored }), asks(CAMPAIGNING))
  assert.deepEqual(step(ASKING, { type: 'refused-all', ...ANSWERED }), {
    ...asks(absent()),
    actions: [...REFUSED.actions, { type: 'confirm', id: OPERATION }],
  })
})

test('ownership, campaigning, ignores answers to other commits', () => {
  const operation = 'another'
  const events: OwnershipEvent[] = [
    { type: 'committed', operation },
    { type: 'refused', operation, stands: null },
    { type: 'refused-all', operation },
    { type: 'unsettled', operation },
    { type: 'seen', stored: owned({ owner: B }) },
  ]
  for (const event of events) assert.deepEqual(step(CAMPAIGNING, event), unchanged(CAMPAIGNING))
})

test('ownership, session ended, takes everything with it', () => {
  const ended = { type: 'session-ended' } as const
  const over = { type: 'campaign-ended', outcome: 'unknown' } as const
  assert.deepEqual(step(CAMPAIGNING, ended, DEAD), becomes({ status: 'absent' }, [over]))
  for (const now of [ACQUIRING, SERVING, SETTLING, DRAINING]) {
    assert.deepEqual(
      step(seat(now), ended, DEAD),
      becomes({ status: 'absent' }, [lost('session-ended')]),
    )
  }
})

// Acquiring and serving.

test('ownership, acquired, opens the gate', () => {
  assert.deepEqual(
    step(seat(ACQUIRING), { type: 'acquired' }),
    becomes(SERVING, [{ type: 'open-gate' }]),
  )
})

test('ownership, acquired in doubt, opens the gate only once the doubt is settled', () => {
  const doubted = step(seat(ACQUIRING), { type: 'heard-higher', position: at(4) })
  assert.deepEqual(doubted, asks(seat(ACQUIRING), 52_000))
  const settling = { ...seat(SETTLING), asked: OPERATION }
  assert.deepEqual(step(doubted.seat, { type: 'acquired' }), unchanged(settling))
  assert.deepEqual(
    step(settling, { type: 'confirmed', id: OPERATION, stored: owned() }),
    becomes(SERVING, [{ type: 'open-gate' }]),
  )
})

test('ownership, acquire failed or overdue, gives up without a drain', () => {
  for (const [event, to] of [
    [{ type: 'acquire-failed', to: B.member }, B.member],
    [{ type: 'wake' }, null],
  ] as const) {
    const commit =
      to === null ? vacate(PARTITION, owned(), stamp) : handOver(PARTITION, owned(), B, 1, stamp)
    assert.deepEqual(
      step(seat(ACQUIRING), event, CONTEXT, 52_000),
      becomes(
        {
          status: 'handing-over',
          grant: GRANT,
          stored: owned(),
          giveUp: { to, reason: 'acquire-failed' },
          ending: 'unused',
          commit,
          drainMs: 0,
          sentAtMs: 52_000,
        },
        [lost('acquire-overdue'), sends(commit, 'hand-over')],
      ),
    )
  }
})

test('ownership, woken early or while serving, does nothing', () => {
  assert.deepEqual(
    step(seat(ACQUIRING), { type: 'wake' }, CONTEXT, 51_999),
    unchanged(seat(ACQUIRING), 52_000),
  )
  assert.deepEqual(step(seat(SERVING), { type: 'wake' }), unchanged(seat(SERVING)))
})

test('ownership, revoked or told to give up, drains', () => {
  const overdueAtMs = NOW_MS + 1000
  for (const now of [ACQUIRING, SERVING]) {
    const draining = { ...DRAINING, sinceMs: NOW_MS, overdueAtMs }
    assert.deepEqual(
      step(seat(now), { type: 'seen', stored: revoking(B) }),
      becomes(draining, [{ type: 'drain', giveUp: draining.giveUp }]),
    )
    const giveUp = { to: null, reason: 'leave' } as const
    assert.deepEqual(
      step(seat(now), { type: 'give-up', giveUp }),
      becomes({ ...draining, stored: owned(), giveUp }, [{ type: 'drain', giveUp }]),
    )
  }
})

test('ownership, held while the incarnation rises, drains to myself', () => {
  const giveUp = { to: ME.member, reason: 'incarnation' } as const
  assert.deepEqual(
    step(seat(SERVING), { type: 'seen', stored: owned() }, RISEN),
    becomes({ ...DRAINING, stored: owned(), giveUp, sinceMs: NOW_MS, overdueAtMs: NOW_MS + 1000 }, [
      { type: 'drain', giveUp },
    ]),
  )
})

test('ownership, higher generation heard, is suspect, then reopened', () => {
  const settling = { ...seat(SETTLING), asked: OPERATION }
  const suspended = { type: 'suspend-gate', why: 'higher-generation' } as const
  assert.deepEqual(step(seat(SERVING), { type: 'heard-higher', position: at(4) }), {
    ...asks(settling),
    actions: [suspended, { type: 'confirm', id: OPERATION }],
  })
  assert.deepEqual(
    step(settling, { type: 'confirmed', id: OPERATION, stored: owned() }),
    becomes(SERVING, [{ type: 'open-gate' }]),
  )
})

test('ownership, higher generation heard and confirmed, is lost', () => {
  const settling = { ...seat(SETTLING), asked: OPERATION }
  const stored = owned({ owner: B, generation: 4 })
  assert.deepEqual(
    step(settling, { type: 'confirmed', id: OPERATION, stored }),
    becomes({ status: 'absent' }, [lost('superseded')]),
  )
})

test('ownership, position heard that is not higher, is no reason to doubt', () => {
  assert.deepEqual(
    step(seat(SERVING), { type: 'heard-higher', position: at(3) }),
    unchanged(seat(SERVING)),
  )
})

test('ownership, map shows another grant, is suspect, and asks anew at each further sign', () => {
  const stored = owned({ owner: B, generation: 4 })
  const settling = seat(SETTLING)
  assert.deepEqual(step(seat(SERVING), { type: 'seen', stored }), {
    ...asks(settling),
    actions: [
      { type: 'suspend-gate', why: 'changed-record' },
      { type: 'confirm', id: OPERATION },
    ],
  })
  const asked = { ...settling, asked: 'earlier' as never }
  assert.deepEqual(step(asked, { type: 'seen', stored }), asks(settling))
})

test('ownership, superseded by a record that names me and cannot be mine, halts it', () => {
  const settling = { ...seat(SETTLING), asked: OPERATION }
  const stored = owned({ generation: 2 })
  const commit = halt(PARTITION, stored, ME, 'fence-ahead', stamp)
  assert.deepEqual(
    step(settling, { type: 'confirmed', id: OPERATION, stored }),
    becomes({ status: 'halting', grant: { ...GRANT, generation: 2 }, commit, highest: at(3) }, [
      lost('superseded'),
      sends(commit, 'halt'),
    ]),
  )
})

test('ownership, record halted, is lost', () => {
  for (const now of [ACQUIRING, SERVING, DRAINING]) {
    assert.deepEqual(
      step(seat(now), { type: 'seen', stored: halted() }),
      becomes({ status: 'absent' }, [lost('halted')]),
    )
  }
})

test('ownership, fence ahead, closes at once and marks the record, under any status held', () => {
  const commit = halt(PARTITION, owned(), ME, 'fence-ahead', stamp)
  for (const now of [ACQUIRING, SERVING, SETTLING]) {
    assert.deepEqual(
      step(seat(now), { type: 'fence-ahead', highest: at(9) }),
      becomes({ status: 'halting', grant: GRANT, commit, highest: at(9) }, [
        lost('superseded'),
        sends(commit, 'halt'),
      ]),
    )
  }
})

test('ownership, fence ahead of an incarnation that is over, drains instead of halting', () => {
  const taken = step(seat(SERVING), { type: 'fence-ahead', highest: at(9) }, RISEN)
  assert.equal(taken.seat.now.status, 'draining')
})
