/**
 * Plan: one session, T = 6 s, margin 1 s, opened at 1000: every status meets every event that matters;
 * the whole step is asserted each time.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { groupName, memberName, sessionId } from '../../src/core/ids.ts'
import { groupKeys } from '../../src/core/keys.ts'
import type { SessionEnd, SessionEvent, SessionState, SessionStep } from '../../src/core/session.ts'
import {
  claimTransaction,
  memberSessionKeys,
  proofTransaction,
  RETRY_MS,
  startSession,
  stepSession,
} from '../../src/core/session.ts'
import type { KeyValue } from '../../src/core/transaction.ts'

const ME = sessionId('00000000000000a1')
const OTHER = sessionId('00000000000000b2')
const SETTINGS = { ttlMs: 6000, marginMs: 1000 }

type Claiming = SessionState & { status: 'claiming' }
type Live = SessionState & { status: 'live' }

const OPENING: SessionState = { status: 'opening', session: ME, sentAtMs: 1000 }
const CLAIMING: Claiming = {
  status: 'claiming',
  session: ME,
  sentAtMs: 1000,
  ttlMs: 6000,
  deadlineMs: 6000,
  againAtMs: null,
}
const LIVE: Live = {
  status: 'live',
  session: ME,
  ttlMs: 6000,
  deadlineMs: 6000,
  suspectAtMs: 5000,
  round: 'resting',
  sentAtMs: 1000,
  nextAtMs: 3000,
}
const RENEWING: Live = { ...LIVE, round: 'renewing', sentAtMs: 3000 }
const PROVING: Live = { ...RENEWING, round: 'proving' }

function step(state: SessionState, event: SessionEvent, nowMs: number): SessionStep {
  return stepSession(state, event, SETTINGS, nowMs)
}

function unchanged(state: SessionState, wakeAtMs: number | null): SessionStep {
  return { state, actions: [], wakeAtMs }
}

function ended(end: SessionEnd): SessionStep {
  return {
    state: { status: 'ended', session: ME, end },
    actions: [
      { type: 'ended', end },
      { type: 'close-lease', session: ME },
    ],
    wakeAtMs: null,
  }
}

function under(session: typeof ME | null): KeyValue {
  return { key: 'k', value: '', createRevision: 1, modRevision: 1, session }
}

test('session, starting, opens a lease under its own id', () => {
  assert.deepEqual(startSession(ME, SETTINGS, 1000), {
    state: OPENING,
    actions: [{ type: 'open-lease', session: ME, ttlMs: 6000 }],
    wakeAtMs: null,
  })
})

test('session, opened, claims its key, with the deadline counted from the send', () => {
  assert.deepEqual(step(OPENING, { type: 'opened', ttlMs: 6000 }, 1500), {
    state: CLAIMING,
    actions: [{ type: 'claim', session: ME }],
    wakeAtMs: 6000,
  })
})

test('session, opened with a TTL that the store raised, counts that one', () => {
  assert.deepEqual(step(OPENING, { type: 'opened', ttlMs: 9000 }, 1500), {
    state: { ...CLAIMING, ttlMs: 9000, deadlineMs: 9000 },
    actions: [{ type: 'claim', session: ME }],
    wakeAtMs: 9000,
  })
})

test('session, opened after its deadline, ends', () => {
  assert.deepEqual(
    step(OPENING, { type: 'opened', ttlMs: 6000 }, 6000),
    ended({ cause: 'deadline' }),
  )
})

test('session, not opened, ends and closes what may stand all the same', () => {
  assert.deepEqual(
    step(OPENING, { type: 'open-failed', detail: 'no leader' }, 1500),
    ended({ cause: 'open-failed', detail: 'no leader' }),
  )
})

test('session, opening, ignores what belongs to later statuses', () => {
  for (const event of [{ type: 'claimed' }, { type: 'wake' }, { type: 'claim-unknown' }] as const) {
    assert.deepEqual(step(OPENING, event, 1500), unchanged(OPENING, null))
  }
})

test('session, claimed, is live until the deadline of the open', () => {
  const live: SessionStep = {
    state: LIVE,
    actions: [{ type: 'opened', session: ME, ttlMs: 6000 }],
    wakeAtMs: 3000,
  }
  assert.deepEqual(step(CLAIMING, { type: 'claimed' }, 1600), live)
})

test('session, claimed but the deadline passed first, ends', () => {
  assert.deepEqual(step(CLAIMING, { type: 'claimed' }, 6000), ended({ cause: 'deadline' }))
})

test('session, lost claim reply, claims again and finds its own key', () => {
  const waiting = { ...CLAIMING, againAtMs: 2000 + RETRY_MS }
  const unknown = step(CLAIMING, { type: 'claim-unknown' }, 2000)
  assert.deepEqual(unknown, { state: waiting, actions: [], wakeAtMs: 2000 + RETRY_MS })
  assert.deepEqual(step(waiting, { type: 'wake' }, 2000), unchanged(waiting, 2000 + RETRY_MS))
  assert.deepEqual(step(waiting, { type: 'wake' }, 2000 + RETRY_MS), {
    state: CLAIMING,
    actions: [{ type: 'claim', session: ME }],
    wakeAtMs: 6000,
  })
  assert.deepEqual(step(CLAIMING, { type: 'claim-refused', stands: under(ME) }, 2500), {
    state: LIVE,
    actions: [{ type: 'opened', session: ME, ttlMs: 6000 }],
    wakeAtMs: 3000,
  })
})

test('session, key under another session, ends as name in use', () => {
  assert.deepEqual(
    step(CLAIMING, { type: 'claim-refused', stands: under(OTHER) }, 1600),
    ended({ cause: 'name-in-use', holder: OTHER }),
  )
  assert.deepEqual(
    step(CLAIMING, { type: 'claim-refused', stands: under(null) }, 1600),
    ended({ cause: 'name-in-use', holder: null }),
  )
})

test('session, resting, begins a round when it is due and not before', () => {
  assert.deepEqual(step(LIVE, { type: 'wake' }, 2999), unchanged(LIVE, 3000))
  assert.deepEqual(step(LIVE, { type: 'wake' }, 3000), {
    state: RENEWING,
    actions: [{ type: 'renew', session: ME, sentAtMs: 3000, timeoutMs: 2000 }],
    wakeAtMs: 6000,
  })
})

test('session, renewed, proves before anything moves', () => {
  assert.deepEqual(step(RENEWING, { type: 'renewed', sentAtMs: 3000, ttlMs: 6000 }, 3100), {
    state: PROVING,
    actions: [{ type: 'prove', session: ME, sentAtMs: 3000, timeoutMs: 2000 }],
    wakeAtMs: 6000,
  })
})

test('session, near its deadline, gives a call no longer than that', () => {
  assert.deepEqual(step(RENEWING, { type: 'renewed', sentAtMs: 3000, ttlMs: 6000 }, 5990), {
    state: PROVING,
    actions: [{ type: 'prove', session: ME, sentAtMs: 3000, timeoutMs: 10 }],
    wakeAtMs: 6000,
  })
})

test('session, renewed with TTL 0, is gone', () => {
  assert.deepEqual(
    step(RENEWING, { type: 'renewed', sentAtMs: 3000, ttlMs: 0 }, 3100),
    ended({ cause: 'session-gone' }),
  )
})

test('session, proved, moves its deadline to the send of the renewal', () => {
  assert.deepEqual(step(PROVING, { type: 'proved', sentAtMs: 3000 }, 3200), {
    state: { ...LIVE, deadlineMs: 8000, suspectAtMs: 7000, sentAtMs: 3000, nextAtMs: 5000 },
    actions: [{ type: 'proved', roundTripMs: 200, leftMs: 4800 }],
    wakeAtMs: 5000,
  })
})

test('session, proved under a shorter TTL, keeps the later deadline', () => {
  const shorter: Live = { ...PROVING, ttlMs: 3000 }
  assert.deepEqual(step(shorter, { type: 'proved', sentAtMs: 3000 }, 3200), {
    state: {
      ...shorter,
      round: 'resting',
      deadlineMs: 6000,
      suspectAtMs: 5000,
      nextAtMs: 4000,
    },
    actions: [{ type: 'proved', roundTripMs: 200, leftMs: 2800 }],
    wakeAtMs: 4000,
  })
})

test('session, disproved, ends at once and says whether it was evicted', () => {
  assert.deepEqual(
    step(PROVING, { type: 'disproved', sentAtMs: 3000, evicted: false }, 3200),
    ended({ cause: 'session-gone' }),
  )
  assert.deepEqual(
    step(PROVING, { type: 'disproved', sentAtMs: 3000, evicted: true }, 3200),
    ended({ cause: 'evicted' }),
  )
})

test('session, disproved by an earlier round, ends all the same: gone stays gone', () => {
  assert.deepEqual(
    step(LIVE, { type: 'disproved', sentAtMs: 1, evicted: false }, 3200),
    ended({ cause: 'session-gone' }),
  )
})

test('session, round failed, rests shortly and keeps its deadline', () => {
  for (const state of [RENEWING, PROVING]) {
    assert.deepEqual(step(state, { type: 'round-failed', sentAtMs: 3000 }, 3500), {
      state: { ...state, round: 'resting', nextAtMs: 3500 + RETRY_MS },
      actions: [],
      wakeAtMs: 3500 + RETRY_MS,
    })
  }
})

test('session, reply of an earlier round or at the wrong time, is ignored', () => {
  const late: SessionEvent[] = [
    { type: 'renewed', sentAtMs: 2000, ttlMs: 6000 },
    { type: 'proved', sentAtMs: 2000 },
    { type: 'round-failed', sentAtMs: 2000 },
  ]
  for (const event of late) {
    assert.deepEqual(step(RENEWING, event, 3100), unchanged(RENEWING, 6000))
    assert.deepEqual(step(PROVING, event, 3100), unchanged(PROVING, 6000))
  }
  assert.deepEqual(
    step(RENEWING, { type: 'proved', sentAtMs: 3000 }, 3100),
    unchanged(RENEWING, 6000),
  )
  assert.deepEqual(
    step(PROVING, { type: 'renewed', sentAtMs: 3000, ttlMs: 6000 }, 3100),
    unchanged(PROVING, 6000),
  )
  assert.deepEqual(step(LIVE, { type: 'proved', sentAtMs: 1000 }, 2000), unchanged(LIVE, 3000))
})

test('session, deadline passed before the reply, ends whatever the reply says', () => {
  const replies: SessionEvent[] = [
    { type: 'proved', sentAtMs: 3000 },
    { type: 'renewed', sentAtMs: 3000, ttlMs: 6000 },
    { type: 'round-failed', sentAtMs: 3000 },
    { type: 'wake' },
  ]
  for (const event of replies) {
    assert.deepEqual(step(PROVING, event, 6000), ended({ cause: 'deadline' }))
  }
})

test('session, closed in any status, ends locally first and then closes its lease', () => {
  for (const state of [OPENING, CLAIMING, LIVE, RENEWING, PROVING]) {
    assert.deepEqual(
      step(state, { type: 'close', cause: 'closed' }, 2000),
      ended({ cause: 'closed' }),
    )
  }
})

test('session, ended, stays ended', () => {
  const { state } = ended({ cause: 'closed' })
  const events: SessionEvent[] = [
    { type: 'opened', ttlMs: 6000 },
    { type: 'claimed' },
    { type: 'proved', sentAtMs: 3000 },
    { type: 'wake' },
    { type: 'close', cause: 'evicted' },
  ]
  for (const event of events) assert.deepEqual(step(state, event, 2000), unchanged(state, null))
})

test('session, any order of events, never moves its deadline back or beyond a proved renewal', () => {
  const anyEvent: fc.Arbitrary<SessionEvent> = fc.oneof(
    fc.constantFrom<SessionEvent>({ type: 'wake' }, { type: 'claimed' }, { type: 'claim-unknown' }),
    fc.record({ type: fc.constant('proved' as const), sentAtMs: fc.constant(-1) }),
    fc.record({
      type: fc.constant('renewed' as const),
      sentAtMs: fc.constant(-1),
      ttlMs: fc.constantFrom(3000, 6000, 9000),
    }),
    fc.record({ type: fc.constant('round-failed' as const), sentAtMs: fc.constant(-1) }),
  )
  const script = fc.array(fc.tuple(anyEvent, fc.nat({ max: 2500 })), { maxLength: 60 })
  fc.assert(
    fc.property(script, (events) => {
      let nowMs = 1000
      let { state } = step(OPENING, { type: 'opened', ttlMs: 6000 }, nowMs)
      let deadlineMs = Number.NEGATIVE_INFINITY
      for (const [event, passedMs] of events) {
        nowMs += passedMs
        const sentAtMs = 'sentAtMs' in state ? state.sentAtMs : 0
        const fitting = 'sentAtMs' in event ? { ...event, sentAtMs } : event
        const before = state
        state = step(state, fitting, nowMs).state
        if (before.status === 'ended') assert.equal(state, before)
        if (state.status !== 'live') continue
        assert.ok(nowMs < state.deadlineMs, 'live beyond its deadline')
        assert.ok(state.deadlineMs >= deadlineMs, 'the deadline moved back')
        assert.ok(state.suspectAtMs <= state.deadlineMs)
        const moved = before.status === 'live' && before.deadlineMs !== state.deadlineMs
        if (moved) {
          assert.equal(fitting.type, 'proved')
          assert.equal(state.deadlineMs, sentAtMs + state.ttlMs - SETTINGS.marginMs)
        }
        deadlineMs = state.deadlineMs
      }
    }),
  )
})

test('session, its transactions, claim only an absent key and prove without writing anything', () => {
  const keys = groupKeys('/tenure/v1/', groupName('g'))
  const member = memberSessionKeys(keys, memberName('a'))
  const [claim, eviction] = ['/tenure/v1/g/members/a', '/tenure/v1/g/evictions/a']
  assert.deepEqual(claimTransaction(member, ME, 'value'), {
    compare: [{ type: 'absent', key: claim }],
    success: [{ type: 'put', key: claim, value: 'value', session: ME }],
    failure: [{ type: 'get', key: claim }],
  })
  assert.deepEqual(proofTransaction(member, ME), {
    compare: [
      { type: 'lease-equals', key: claim, session: ME },
      { type: 'absent', key: eviction },
    ],
    success: [{ type: 'delete', key: keys.never }],
    failure: [
      { type: 'get', key: claim },
      { type: 'get', key: eviction },
    ],
  })
  assert.deepEqual(
    proofTransaction({ claim: keys.rebalancer, eviction: null, never: keys.never }, ME),
    {
      compare: [{ type: 'lease-equals', key: keys.rebalancer, session: ME }],
      success: [{ type: 'delete', key: keys.never }],
      failure: [{ type: 'get', key: keys.rebalancer }],
    },
  )
})
