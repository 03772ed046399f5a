/** Plan: each transition of the follower as one whole step, then random histories of messages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stepFollower } from '../../src/core/map-follower.ts'
import type {
  DeltaEvent,
  FollowerEvent,
  FollowerPhase,
  FollowerState,
} from '../../src/core/map-follower-state.ts'
import {
  createFollower,
  REQUEST_TIMEOUT_MS,
  SILENCE_MS,
} from '../../src/core/map-follower-state.ts'
import { compareVersions } from '../../src/core/map-version.ts'

const M = 100
const NOW_MS = 10_000

function at(revision: number, incarnation = M) {
  return { incarnation, revision }
}

function delta(previous: number, revision: number, more: Partial<DeltaEvent> = {}): DeltaEvent {
  const version = at(revision)
  return { type: 'delta', publisher: 'a', version, previous, part: 0, parts: 1, ageMs: 0, ...more }
}

function digest(revision: number, hash: string, map = 'h', mapNewest = 0): FollowerEvent {
  return { type: 'digest', version: at(revision), hash, ageMs: 0, mapHash: map, mapNewest }
}

function snapshot(request: number, revision: number, hash = 'x', incarnation = M): FollowerEvent {
  const version = at(revision, incarnation)
  return { type: 'snapshot', request, version, hash, ageMs: 0, mapHash: 'h', mapNewest: 0 }
}

function stateIn(phase: FollowerPhase, more: Partial<FollowerState> = {}): FollowerState {
  return { ...createFollower(1), version: at(50), confirmedAtMs: 5000, phase, ...more }
}

const FOLLOWING: FollowerPhase = { status: 'following', silenceAtMs: NOW_MS + 1000 }

function waiting(reason: 'gap' | 'reconnected' | 'mismatch', need: number | null): FollowerPhase {
  return { status: 'waiting', reason, need, sinceMs: 9000, requestAtMs: NOW_MS + 100 }
}

function syncing(need: number | null, reason: 'gap' | 'start' = 'gap'): FollowerPhase {
  return { status: 'syncing', reason, need, sinceMs: 9000, request: 7, timeoutAtMs: NOW_MS + 900 }
}

const AGAIN: FollowerPhase = { status: 'following', silenceAtMs: NOW_MS + SILENCE_MS }

test('follower, connected for the first time: waits a moment, then asks once', () => {
  const start = createFollower(1)
  const first = stepFollower(start, { type: 'connected' }, NOW_MS)
  const { phase } = first.state
  assert.ok(phase.status === 'waiting')
  assert.ok(phase.requestAtMs >= NOW_MS && phase.requestAtMs <= NOW_MS + 50)
  assert.deepEqual(first, {
    state: {
      ...start,
      seed: first.state.seed,
      phase: {
        status: 'waiting',
        reason: 'start',
        need: null,
        sinceMs: NOW_MS,
        requestAtMs: phase.requestAtMs,
      },
    },
    actions: [],
    wakeAtMs: phase.requestAtMs,
  })
  const timeoutAtMs = phase.requestAtMs + REQUEST_TIMEOUT_MS
  assert.deepEqual(stepFollower(first.state, { type: 'woke' }, phase.requestAtMs), {
    state: {
      ...first.state,
      requests: 1,
      phase: {
        status: 'syncing',
        reason: 'start',
        need: null,
        sinceMs: NOW_MS,
        request: 1,
        timeoutAtMs,
      },
    },
    actions: [{ type: 'request-snapshot', request: 1, timeoutMs: REQUEST_TIMEOUT_MS }],
    wakeAtMs: timeoutAtMs,
  })
})

test('follower, first snapshot: takes the map and follows', () => {
  const before = stateIn(syncing(null, 'start'), {
    version: { incarnation: 0, revision: 0 },
    confirmedAtMs: null,
  })
  assert.deepEqual(stepFollower(before, snapshot(7, 60), NOW_MS), {
    state: { ...before, version: at(60), confirmedAtMs: NOW_MS, attempt: 1, phase: AGAIN },
    actions: [{ type: 'replace-map' }, { type: 'report-resynced', reason: 'start', tookMs: 1000 }],
    wakeAtMs: NOW_MS + SILENCE_MS,
  })
})

test('follower, delta that continues the version: merges it, whoever published it', () => {
  const before = stateIn(FOLLOWING)
  for (const publisher of ['a', 'b']) {
    assert.deepEqual(stepFollower(before, delta(48, 52, { publisher, ageMs: 30 }), NOW_MS), {
      state: { ...before, version: at(52), confirmedAtMs: NOW_MS - 30, phase: AGAIN },
      actions: [{ type: 'merge-delta' }],
      wakeAtMs: NOW_MS + SILENCE_MS,
    })
  }
})

test('follower, delta after a lost one: merges it, reports the gap, keeps its version', () => {
  const before = stateIn(FOLLOWING)
  const after = stepFollower(before, delta(53, 55), NOW_MS)
  assert.ok(after.state.phase.status === 'waiting')
  const { requestAtMs } = after.state.phase
  assert.deepEqual(after, {
    state: {
      ...before,
      seed: after.state.seed,
      chain: { incarnation: M, from: 53, to: 55 },
      phase: { status: 'waiting', reason: 'gap', need: 55, sinceMs: NOW_MS, requestAtMs },
    },
    actions: [{ type: 'merge-delta' }, { type: 'report-gap', have: 50, got: 53 }],
    wakeAtMs: requestAtMs,
  })
})

test('follower, snapshot between the gap and the deltas behind it: joins them', () => {
  const before = stateIn(syncing(58), { chain: { incarnation: M, from: 53, to: 58 } })
  assert.deepEqual(stepFollower(before, snapshot(7, 54), NOW_MS), {
    state: {
      ...before,
      version: at(58),
      chain: null,
      confirmedAtMs: NOW_MS,
      attempt: 1,
      phase: AGAIN,
    },
    actions: [{ type: 'merge-snapshot' }, { type: 'report-resynced', reason: 'gap', tookMs: 1000 }],
    wakeAtMs: NOW_MS + SILENCE_MS,
  })
})

test('follower, snapshot that leaves the gap open: uses it and backs off', () => {
  const before = stateIn(syncing(58), { chain: { incarnation: M, from: 53, to: 58 } })
  const after = stepFollower(before, snapshot(7, 51), NOW_MS)
  assert.ok(after.state.phase.status === 'waiting')
  const { requestAtMs } = after.state.phase
  assert.ok(requestAtMs >= NOW_MS + 100 && requestAtMs <= NOW_MS + 200)
  assert.deepEqual(after, {
    state: {
      ...before,
      version: at(51),
      attempt: 1,
      seed: after.state.seed,
      phase: { status: 'waiting', reason: 'gap', need: 58, sinceMs: 9000, requestAtMs },
    },
    actions: [{ type: 'merge-snapshot' }],
    wakeAtMs: requestAtMs,
  })
})

test('follower, snapshot older than the map: refuses it and backs off', () => {
  const before = stateIn(syncing(58))
  const after = stepFollower(before, snapshot(7, 49), NOW_MS)
  assert.deepEqual(after.actions, [])
  assert.deepEqual(after.state.version, at(50))
  assert.equal(after.state.phase.status, 'waiting')
  assert.equal(after.state.attempt, 1)
})

test('follower, snapshot of a request given up: ignores it', () => {
  const before = stateIn(syncing(58))
  assert.deepEqual(stepFollower(before, snapshot(6, 60), NOW_MS), {
    state: before,
    actions: [],
    wakeAtMs: NOW_MS + 900,
  })
})

test('follower, delta that arrives late behind its digest: cancels the request', () => {
  const before = stateIn(waiting('mismatch', 52))
  assert.deepEqual(stepFollower(before, delta(50, 52), NOW_MS), {
    state: { ...before, version: at(52), confirmedAtMs: NOW_MS, phase: AGAIN },
    actions: [{ type: 'merge-delta' }],
    wakeAtMs: NOW_MS + SILENCE_MS,
  })
})

test('follower, reconnected and nothing missed: an equal digest spares the snapshot', () => {
  const offline = stateIn({ status: 'offline' })
  const connected = stepFollower(offline, { type: 'connected' }, NOW_MS)
  assert.ok(connected.state.phase.status === 'waiting')
  assert.equal(connected.state.phase.reason, 'reconnected')
  assert.deepEqual(stepFollower(connected.state, digest(51, 'h'), NOW_MS + 10), {
    state: {
      ...connected.state,
      version: at(51),
      confirmedAtMs: NOW_MS + 10,
      phase: { status: 'following', silenceAtMs: NOW_MS + 10 + SILENCE_MS },
    },
    actions: [],
    wakeAtMs: NOW_MS + 10 + SILENCE_MS,
  })
})

test('follower, digest with another hash: waits for a snapshot, which a delta may spare', () => {
  const before = stateIn(FOLLOWING)
  for (const [revision, need] of [
    [55, 55],
    [50, null],
  ] as const) {
    const after = stepFollower(before, digest(revision, 'other', 'h', 50), NOW_MS)
    assert.ok(after.state.phase.status === 'waiting')
    const { requestAtMs } = after.state.phase
    assert.deepEqual(after, {
      state: {
        ...before,
        seed: after.state.seed,
        phase: { status: 'waiting', reason: 'mismatch', need, sinceMs: NOW_MS, requestAtMs },
      },
      actions: [],
      wakeAtMs: requestAtMs,
    })
  }
})

test('follower, digest of a publisher that is behind: ignores it, and the map grows older', () => {
  const before = stateIn(FOLLOWING)
  assert.deepEqual(stepFollower(before, digest(49, 'other', 'h', 50), NOW_MS), {
    state: { ...before, phase: AGAIN },
    actions: [],
    wakeAtMs: NOW_MS + SILENCE_MS,
  })
})

test('follower, anything of an older incarnation: ignored', () => {
  const before = stateIn(FOLLOWING)
  for (const event of [
    delta(50, 90, { version: at(90, M - 1) }),
    { ...digest(90, 'other'), version: at(90, M - 1) } as FollowerEvent,
  ]) {
    assert.deepEqual(stepFollower(before, event, NOW_MS), {
      state: before,
      actions: [],
      wakeAtMs: NOW_MS + 1000,
    })
  }
})

test('follower, newer incarnation: stages it, and its first snapshot takes the place', () => {
  const before = stateIn(FOLLOWING)
  const staged = stepFollower(before, delta(4, 5, { version: at(5, M + 1) }), NOW_MS)
  assert.deepEqual(staged.actions, [{ type: 'stage-delta' }])
  assert.deepEqual(staged.state.version, at(50))
  const spared = stepFollower(staged.state, digest(50, 'h'), NOW_MS)
  assert.equal(spared.state.phase.status, 'waiting')
  const { phase } = staged.state
  assert.ok(phase.status === 'waiting' && phase.reason === 'incarnation' && phase.need === null)
  const asked = stepFollower(staged.state, { type: 'woke' }, phase.requestAtMs)
  const after = stepFollower(asked.state, snapshot(1, 4, 'x', M + 1), phase.requestAtMs + 5)
  assert.deepEqual(after.state.version, at(5, M + 1))
  assert.deepEqual(after.actions, [
    { type: 'replace-map' },
    {
      type: 'report-resynced',
      reason: 'incarnation',
      tookMs: phase.requestAtMs + 5 - NOW_MS,
    },
  ])
})

test('follower, large delta: counts once all parts came in order, else it is a gap', () => {
  const before = stateIn(FOLLOWING)
  const parts = [0, 1, 2].map((part) => delta(50, 55, { part, parts: 3 }))
  const feed = (indexes: number[]) =>
    indexes.reduce(
      (state, index) => stepFollower(state, parts[index] as DeltaEvent, NOW_MS).state,
      before,
    )
  assert.deepEqual(feed([0, 1]).version, at(50))
  assert.deepEqual(feed([0, 1, 2]).version, at(55))
  assert.equal(feed([0, 1, 2]).phase.status, 'following')
  for (const lossy of [[0, 2], [1, 2], [2]]) {
    assert.deepEqual(feed(lossy).version, at(50))
    assert.equal(feed(lossy).phase.status, 'waiting')
  }
  const last = stepFollower(feed([0, 1]), delta(55, 57), NOW_MS)
  assert.equal(last.state.phase.status, 'waiting')
})

test('follower, request unanswered: backs off, each time longer, up to 5 s', () => {
  let state = stateIn(syncing(58))
  const delaysMs: number[] = []
  let nowMs = NOW_MS
  for (let times = 0; times < 9; times += 1) {
    nowMs += REQUEST_TIMEOUT_MS
    const failed = stepFollower(state, { type: 'woke' }, nowMs)
    assert.ok(failed.state.phase.status === 'waiting')
    delaysMs.push(failed.state.phase.requestAtMs - nowMs)
    nowMs = failed.state.phase.requestAtMs
    const asked = stepFollower(failed.state, { type: 'woke' }, nowMs)
    assert.equal(asked.actions.length, 1)
    state = asked.state
  }
  delaysMs.forEach((delayMs, times) => {
    const limitMs = Math.min(5000, 200 * 2 ** times)
    assert.ok(delayMs >= limitMs / 2 && delayMs <= limitMs, `${times}: ${delayMs}`)
  })
})

test('follower, silence: asks, and asks less often while it lasts', () => {
  let state = stateIn(FOLLOWING)
  let nowMs = NOW_MS
  const restsMs: number[] = []
  for (let times = 0; times < 5; times += 1) {
    assert.ok(state.phase.status === 'following')
    restsMs.push(state.phase.silenceAtMs - nowMs)
    nowMs = state.phase.silenceAtMs
    const silent = stepFollower(state, { type: 'woke' }, nowMs)
    assert.ok(silent.state.phase.status === 'waiting')
    assert.equal(silent.state.phase.reason, 'silence')
    nowMs = silent.state.phase.requestAtMs
    const asked = stepFollower(silent.state, { type: 'woke' }, nowMs)
    state = stepFollower(asked.state, snapshot(times + 1, 50, 'h'), nowMs).state
  }
  assert.deepEqual(restsMs, [1000, 7000, 14_000, 28_000, 30_000])
  assert.equal(stepFollower(state, digest(50, 'h'), nowMs).state.silenceMs, SILENCE_MS)
})

test('follower, disconnected: forgets what was under way, keeps its version', () => {
  const before = stateIn(syncing(58), { chain: { incarnation: M, from: 53, to: 58 } })
  const after = stepFollower(before, { type: 'disconnected' }, NOW_MS)
  assert.deepEqual(after, {
    state: { ...before, phase: { status: 'offline' }, chain: null },
    actions: [],
    wakeAtMs: null,
  })
  assert.deepEqual(stepFollower(after.state, snapshot(7, 60), NOW_MS).actions, [])
})

const anyEvent: fc.Arbitrary<FollowerEvent> = fc.oneof(
  fc.constantFrom<FollowerEvent>(
    { type: 'connected' },
    { type: 'disconnected' },
    { type: 'woke' },
    { type: 'snapshot-failed', request: 1 },
  ),
  fc
    .record({ from: fc.nat(30), more: fc.nat(5), incarnation: fc.integer({ min: 99, max: 101 }) })
    .chain(({ from, more, incarnation }) =>
      fc.record({ part: fc.nat(1), parts: fc.constant(2) }).map((parts) =>
        delta(from, from + more, {
          version: at(from + more, incarnation),
          ...(more % 2 === 0 ? parts : {}),
        }),
      ),
    ),
  fc
    .record({ revision: fc.nat(30), hash: fc.constantFrom('h', 'other'), newest: fc.nat(30) })
    .map(({ revision, hash, newest }) => digest(revision, hash, 'h', newest)),
  fc
    .record({ request: fc.nat(6), revision: fc.nat(30) })
    .map(({ request, revision }) => snapshot(request, revision)),
)

test('follower, any messages: version never goes back, one request at a time, always a next wake', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyEvent, fc.nat(4000)), { maxLength: 60 }), (events) => {
      let state = createFollower(3)
      let nowMs = 0
      for (const [event, passedMs] of events) {
        nowMs += passedMs
        const next = stepFollower(state, event, nowMs)
        assert.ok(compareVersions(next.state.version, state.version) >= 0)
        const requests = next.actions.filter((action) => action.type === 'request-snapshot')
        assert.equal(next.state.requests - state.requests, requests.length)
        if (requests.length > 0) assert.notEqual(state.phase.status, 'syncing')
        assert.equal(next.wakeAtMs === null, next.state.phase.status === 'offline')
        state = next.state
      }
    }),
    { numRuns: 1000 },
  )
})
