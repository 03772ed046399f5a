/**
 * One session: a lease, the key that stands under it, and the deadline that both prove. A member claims
 * `members/<name>`, a rebalancer `rebalancer`; the machine is the same.
 *
 *   opening ──opened──▶ claiming ──claimed──▶ live ──▶ … ──▶ ended
 *      │                   │ key stands           │ deadline | gone | evicted | closed
 *      └──failed──▶ ended  └──▶ ended(name-in-use)┘
 *
 *   live, one round each T/3:   resting ──▶ renewing ──renewed──▶ proving ──proved──▶ resting
 *
 * 1. member → etcd: open a lease under a random id.     The send time is the first "keepalive".
 * 2. member → etcd: put the key under the lease only if the key is absent (else somebody lives).
 * 3. each T/3: renew the lease; then *prove*: a transaction that compares the key's lease and the
 *    eviction mark's absence, and deletes a key that never exists. It goes through consensus and
 *    leaves no trace. Only a proof moves the deadline, to the renewal's *send* time + T - margin:
 *    an old etcd acknowledges keepalives of dead leases, and a reply may be late by any time.
 *
 * I1  deadlineMs never moves once the session has ended, and only forward before.
 * I2  the deadline is at most (send time of a confirmed renewal) + granted TTL - margin.
 * I3  an ended session stays ended: a process that wants back opens another, with another id.
 *
 * Failure cases: a lost claim reply is settled by claiming again (the failure branch reads whose lease
 * is there); a lost renewal or proof is a missed round, retried after `RETRY_MS` until the deadline; a
 * reply of an earlier round is ignored. Whoever ends a session ends it here first, then closes the lease.
 */
import type { MemberName, SessionId } from './ids.ts'
import type { Compare, KeyValue, Operation, Transaction } from './transaction.ts'

export const RETRY_MS = 200

export type SessionSettings = {
  /** TTL to ask for; etcd may grant more. */
  readonly ttlMs: number
  readonly marginMs: number
}

/** Which key the session claims, and which marks end it. */
export type SessionKeys = {
  readonly claim: string
  readonly eviction: string | null
  readonly never: string
}

export type SessionEnd =
  | { readonly cause: 'deadline' | 'session-gone' | 'evicted' | 'closed' }
  | { readonly cause: 'drain-overdue' | 'invariant-broken' }
  | { readonly cause: 'open-failed'; readonly detail: string }
  | { readonly cause: 'name-in-use'; readonly holder: SessionId | null }

export type Round = 'resting' | 'renewing' | 'proving'

export type SessionState =
  | { readonly status: 'opening'; readonly session: SessionId; readonly sentAtMs: number }
  | {
      readonly status: 'claiming'
      readonly session: SessionId
      readonly sentAtMs: number
      readonly ttlMs: number
      readonly deadlineMs: number
      /** When to claim again after an unknown outcome; null while a claim is under way. */
      readonly againAtMs: number | null
    }
  | {
      readonly status: 'live'
      readonly session: SessionId
      readonly ttlMs: number
      readonly deadlineMs: number
      readonly suspectAtMs: number
      readonly round: Round
      /** Send time of this round's renewal. */
      readonly sentAtMs: number
      readonly nextAtMs: number
    }
  | { readonly status: 'ended'; readonly session: SessionId; readonly end: SessionEnd }

export type SessionEvent =
  | { readonly type: 'opened'; readonly ttlMs: number }
  | { readonly type: 'open-failed'; readonly detail: string }
  | { readonly type: 'claimed' }
  | { readonly type: 'claim-refused'; readonly stands: KeyValue | null }
  | { readonly type: 'claim-unknown' }
  | { readonly type: 'renewed'; readonly sentAtMs: number; readonly ttlMs: number }
  | { readonly type: 'proved'; readonly sentAtMs: number }
  | { readonly type: 'disproved'; readonly sentAtMs: number; readonly evicted: boolean }
  | { readonly type: 'round-failed'; readonly sentAtMs: number }
  | {
      readonly type: 'close'
      readonly cause: 'closed' | 'evicted' | 'drain-overdue' | 'invariant-broken'
    }
  | { readonly type: 'wake' }

export type SessionAction =
  | { readonly type: 'open-lease'; readonly session: SessionId; readonly ttlMs: number }
  | { readonly type: 'claim'; readonly session: SessionId }
  | {
      readonly type: 'renew'
      readonly session: SessionId
      readonly sentAtMs: number
      readonly timeoutMs: number
    }
  | {
      readonly type: 'prove'
      readonly session: SessionId
      readonly sentAtMs: number
      readonly timeoutMs: number
    }
  | { readonly type: 'close-lease'; readonly session: SessionId }
  | { readonly type: 'opened'; readonly session: SessionId; readonly ttlMs: number }
  | { readonly type: 'proved'; readonly roundTripMs: number; readonly leftMs: number }
  | { readonly type: 'ended'; readonly end: SessionEnd }

export type SessionStep = {
  readonly state: SessionState
  readonly actions: readonly SessionAction[]
  /** When to send `wake`; null: never. A spurious wake is harmless. */
  readonly wakeAtMs: number | null
}

export function startSession(
  session: SessionId,
  settings: SessionSettings,
  nowMs: number,
): SessionStep {
  const state: SessionState = { status: 'opening', session, sentAtMs: nowMs }
  return {
    state,
    actions: [{ type: 'open-lease', session, ttlMs: settings.ttlMs }],
    wakeAtMs: null,
  }
}

export function stepSession(
  state: SessionState,
  event: SessionEvent,
  settings: SessionSettings,
  nowMs: number,
): SessionStep {
  if (state.status === 'ended') return stay(state)
  if (event.type === 'close') return end(state, { cause: event.cause })
  switch (state.status) {
    case 'opening':
      return stepOpening(state, event, settings, nowMs)
    case 'claiming':
      return stepClaiming(state, event, nowMs)
    case 'live':
      return stepLive(state, event, settings, nowMs)
    default:
      return state satisfies never
  }
}

type Opening = SessionState & { readonly status: 'opening' }
type Claiming = SessionState & { readonly status: 'claiming' }
type Live = SessionState & { readonly status: 'live' }

function stepOpening(
  state: Opening,
  event: SessionEvent,
  settings: SessionSettings,
  nowMs: number,
): SessionStep {
  if (event.type === 'open-failed') {
    return end(state, { cause: 'open-failed', detail: event.detail })
  }
  if (event.type !== 'opened') return stay(state)
  const deadlineMs = state.sentAtMs + event.ttlMs - settings.marginMs
  if (nowMs >= deadlineMs) return end(state, { cause: 'deadline' })
  const { session, sentAtMs } = state
  return {
    state: {
      status: 'claiming',
      session,
      sentAtMs,
      ttlMs: event.ttlMs,
      deadlineMs,
      againAtMs: null,
    },
    actions: [{ type: 'claim', session }],
    wakeAtMs: deadlineMs,
  }
}

function stepClaiming(state: Claiming, event: SessionEvent, nowMs: number): SessionStep {
  if (nowMs >= state.deadlineMs) return end(state, { cause: 'deadline' })
  const { session, ttlMs, deadlineMs, sentAtMs } = state
  switch (event.type) {
    case 'claimed':
      return becomeLive(state)
    case 'claim-refused':
      // Our own earlier claim, of which the reply was lost, may stand there.
      if (event.stands?.session === session) return becomeLive(state)
      return end(state, { cause: 'name-in-use', holder: event.stands?.session ?? null })
    case 'claim-unknown':
      return { ...stay({ ...state, againAtMs: nowMs + RETRY_MS }), wakeAtMs: nowMs + RETRY_MS }
    case 'wake':
      if (state.againAtMs === null || nowMs < state.againAtMs) return stay(state)
      return {
        state: { status: 'claiming', session, sentAtMs, ttlMs, deadlineMs, againAtMs: null },
        actions: [{ type: 'claim', session }],
        wakeAtMs: deadlineMs,
      }
    default:
      return stay(state)
  }
}

function becomeLive(state: Claiming): SessionStep {
  const { session, ttlMs, sentAtMs, deadlineMs } = state
  const live: Live = {
    status: 'live',
    session,
    ttlMs,
    deadlineMs,
    suspectAtMs: suspectAt(sentAtMs, ttlMs, deadlineMs),
    round: 'resting',
    sentAtMs,
    nextAtMs: sentAtMs + ttlMs / 3,
  }
  return { ...stay(live), actions: [{ type: 'opened', session, ttlMs }] }
}

function stepLive(
  state: Live,
  event: SessionEvent,
  settings: SessionSettings,
  nowMs: number,
): SessionStep {
  // Checked before anything else: a reply that comes after the deadline never revives a session.
  if (nowMs >= state.deadlineMs) return end(state, { cause: 'deadline' })
  switch (event.type) {
    case 'wake':
      return state.round === 'resting' && nowMs >= state.nextAtMs
        ? beginRound(state, nowMs)
        : stay(state)
    case 'renewed': {
      if (state.round !== 'renewing' || event.sentAtMs !== state.sentAtMs) return stay(state)
      if (event.ttlMs <= 0) return end(state, { cause: 'session-gone' })
      const next: Live = { ...state, round: 'proving', ttlMs: event.ttlMs }
      return { ...stay(next), actions: [{ type: 'prove', ...call(next, nowMs) }] }
    }
    case 'proved': {
      if (state.round !== 'proving' || event.sentAtMs !== state.sentAtMs) return stay(state)
      return proved(state, settings, nowMs)
    }
    case 'disproved':
      return end(state, { cause: event.evicted ? 'evicted' : 'session-gone' })
    case 'round-failed': {
      if (state.round === 'resting' || event.sentAtMs !== state.sentAtMs) return stay(state)
      return stay({ ...state, round: 'resting', nextAtMs: nowMs + RETRY_MS })
    }
    default:
      return stay(state)
  }
}

function beginRound(state: Live, nowMs: number): SessionStep {
  const next: Live = { ...state, round: 'renewing', sentAtMs: nowMs }
  return { ...stay(next), actions: [{ type: 'renew', ...call(next, nowMs) }] }
}

function proved(state: Live, settings: SessionSettings, nowMs: number): SessionStep {
  const { sentAtMs, ttlMs } = state
  // The TTL may have been granted shorter than before; a deadline still never moves back.
  const deadlineMs = Math.max(state.deadlineMs, sentAtMs + ttlMs - settings.marginMs)
  const next: Live = {
    ...state,
    deadlineMs,
    suspectAtMs: suspectAt(sentAtMs, ttlMs, deadlineMs),
    round: 'resting',
    nextAtMs: Math.max(nowMs, sentAtMs + ttlMs / 3),
  }
  const report: SessionAction = {
    type: 'proved',
    roundTripMs: nowMs - sentAtMs,
    leftMs: deadlineMs - nowMs,
  }
  return { ...stay(next), actions: [report] }
}

/** A round's call may take a third of the TTL, and no longer than the deadline is away. */
function call(state: Live, nowMs: number) {
  const timeoutMs = Math.max(1, Math.min(state.ttlMs / 3, state.deadlineMs - nowMs))
  return { session: state.session, sentAtMs: state.sentAtMs, timeoutMs }
}

function suspectAt(sentAtMs: number, ttlMs: number, deadlineMs: number): number {
  return Math.min(deadlineMs, sentAtMs + (ttlMs * 2) / 3)
}

function end(state: Exclude<SessionState, { status: 'ended' }>, why: SessionEnd): SessionStep {
  return {
    state: { status: 'ended', session: state.session, end: why },
    actions: [
      { type: 'ended', end: why },
      { type: 'close-lease', session: state.session },
    ],
    wakeAtMs: null,
  }
}

function stay(state: SessionState): SessionStep {
  return { state, actions: [], wakeAtMs: wakeOf(state) }
}

function wakeOf(state: SessionState): number | null {
  switch (state.status) {
    case 'claiming':
      return Math.min(state.deadlineMs, state.againAtMs ?? state.deadlineMs)
    case 'live':
      return state.round === 'resting'
        ? Math.min(state.nextAtMs, state.deadlineMs)
        : state.deadlineMs
    case 'opening':
    case 'ended':
      return null
    default:
      return state satisfies never
  }
}

/** Step 2: put the key under the lease, only if nobody's stands there. */
export function claimTransaction(
  keys: SessionKeys,
  session: SessionId,
  value: string,
): Transaction {
  return {
    compare: [{ type: 'absent', key: keys.claim }],
    success: [{ type: 'put', key: keys.claim, value, session }],
    failure: [{ type: 'get', key: keys.claim }],
  }
}

/** Step 3: writes nothing, yet goes through consensus, so that it cannot be stale. */
export function proofTransaction(keys: SessionKeys, session: SessionId): Transaction {
  const compare: Compare[] = [{ type: 'lease-equals', key: keys.claim, session }]
  const failure: Operation[] = [{ type: 'get', key: keys.claim }]
  if (keys.eviction !== null) {
    compare.push({ type: 'absent', key: keys.eviction })
    failure.push({ type: 'get', key: keys.eviction })
  }
  return { compare, success: [{ type: 'delete', key: keys.never }], failure }
}

/** The key of a member's session in its group. */
export function memberSessionKeys(
  keys: { member(m: MemberName): string; eviction(m: MemberName): string; never: string },
  member: MemberName,
): SessionKeys {
  return { claim: keys.member(member), eviction: keys.eviction(member), never: keys.never }
}
