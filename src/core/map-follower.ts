/**
 * Follows the ownership map over a broadcast that may lose anything: says what to merge, when to ask for
 * a snapshot, and how old the map is. The map itself is the driver's (runtime/observer.ts).
 *
 *   offline ──connected──▶ waiting ──its moment──▶ syncing ──snapshot that covers──▶ following
 *      ▲                    ▲  ▲ │                    │ │                             │
 *      └──disconnected──────│  │ └──covered anyway────│─│────────────────────────────▶│
 *      (from any)           │  └──timeout, refusal, snapshot too old, backs off       │
 *                           └──────gap, digest mismatch, silence, newer incarnation───┘
 *
 * Coverage. The map is complete up to `version`. A delta holds all changes in (previous, revision], of
 * whichever publisher: when `previous` is not above the version, the map is then complete up to the
 * delta's revision; else something between is missing: a gap. Deltas behind a gap are merged at once
 * (newer entries are newer truth) and remembered as `chain`, so that a snapshot between the two ends
 * the gap. An equal hash in a digest says that the map is complete up to the digest's revision.
 *
 * I1  version never goes back (S8). What is of an older incarnation is ignored; what is of a newer one
 *     is staged, and takes the map's place with the first snapshot of that incarnation.
 * I2  at most one request is under way; each waits for a random moment, so that observers that lost the
 *     same message do not ask at once; failures back off. What settles the need before cancels it.
 * I3  confirmedAtMs moves only when a message showed that the map is current.
 *
 * Not promised: that a digest or delta that is behind the map (a deposed publisher, a restored etcd) is
 * refused loudly; it is ignored, and the map's age grows.
 */
import { countPart, extendChain, joinChain } from './map-coverage.ts'
import type {
  DeltaEvent,
  FollowerAction,
  FollowerEvent,
  FollowerPhase,
  FollowerState,
  FollowerStep,
  SyncReason,
} from './map-follower-state.ts'
import {
  BACK_OFF_MAX_MS,
  BACK_OFF_MIN_MS,
  REQUEST_SPREAD_MS,
  REQUEST_TIMEOUT_MS,
  SILENCE_MAX_MS,
  SILENCE_MS,
} from './map-follower-state.ts'
import { laterOf } from './map-version.ts'

export function stepFollower(
  state: FollowerState,
  event: FollowerEvent,
  nowMs: number,
): FollowerStep {
  switch (event.type) {
    case 'connected':
      return onConnected(state, nowMs)
    case 'disconnected':
      return step({ ...state, phase: { status: 'offline' }, chain: null, partial: null })
    case 'delta':
      return onDelta(state, event, nowMs)
    case 'digest':
      return onDigest(state, event, nowMs)
    case 'snapshot':
      return onSnapshot(state, event, nowMs)
    case 'snapshot-failed':
      return isAwaited(state, event.request) ? step(backOff(state, nowMs)) : step(state)
    case 'woke':
      return onWoke(state, nowMs)
    default:
      return event satisfies never
  }
}

function onConnected(state: FollowerState, nowMs: number): FollowerStep {
  if (state.phase.status !== 'offline') return step(state)
  const { version } = state
  // What failed over the connection before says nothing about this one.
  const fresh = { ...state, attempt: 0 }
  return version.incarnation === 0
    ? step(wait(fresh, 'start', null, nowMs))
    : step(wait(fresh, 'reconnected', version.revision, nowMs))
}

function onDelta(before: FollowerState, event: DeltaEvent, nowMs: number): FollowerStep {
  const { version, previous } = event
  if (before.phase.status === 'offline') return step(before)
  if (version.incarnation < before.version.incarnation) return step(before)
  const isNewer = version.incarnation > before.version.incarnation
  const merge: FollowerAction = { type: isNewer ? 'stage-delta' : 'merge-delta' }
  const { state, parts } = countPart(before, event)
  if (parts === 'more') return step(state, [merge])
  const covers = parts === 'whole' && !isNewer && previous <= state.version.revision
  if (covers) {
    const complete = joinChain({ ...state, version: laterOf(state.version, version) })
    const isCurrent = version.revision >= state.version.revision
    return step(isCurrent ? confirm(complete, event.ageMs, nowMs) : complete, [merge])
  }
  const chain = parts === 'whole' ? extendChain(state.chain, version, previous) : null
  const reason = state.version.incarnation === 0 ? 'start' : isNewer ? 'incarnation' : 'gap'
  const need = isNewer ? null : version.revision
  const gap = { type: 'report-gap', have: state.version.revision, got: previous } as const
  const isFirst = state.phase.status === 'following' && reason === 'gap'
  return step(needSync({ ...state, chain }, reason, need, nowMs), isFirst ? [merge, gap] : [merge])
}

function onDigest(
  state: FollowerState,
  event: Extract<FollowerEvent, { type: 'digest' }>,
  nowMs: number,
): FollowerStep {
  const { version } = event
  if (state.phase.status === 'offline') return step(state)
  if (version.incarnation < state.version.incarnation) return step(state)
  if (version.incarnation > state.version.incarnation) {
    const reason = state.version.incarnation === 0 ? 'start' : 'incarnation'
    return step(needSync(state, reason, null, nowMs))
  }
  if (event.hash === event.mapHash) {
    const complete = joinChain({ ...state, version: laterOf(state.version, version) })
    return step(confirm({ ...complete, attempt: 0 }, event.ageMs, nowMs, 'equal-hash'))
  }
  if (event.mapNewest > version.revision) return step(heard(state, nowMs))
  // The delta may come behind its digest: then it settles the need before the request's moment.
  const need = version.revision > state.version.revision ? version.revision : null
  return step(needSync(state, 'mismatch', need, nowMs))
}

function onSnapshot(
  state: FollowerState,
  event: Extract<FollowerEvent, { type: 'snapshot' }>,
  nowMs: number,
): FollowerStep {
  const { phase } = state
  if (phase.status !== 'syncing' || phase.request !== event.request) return step(state)
  const isNewer = event.version.incarnation > state.version.incarnation
  const isOlder =
    event.version.incarnation < state.version.incarnation ||
    (!isNewer && event.version.revision < state.version.revision)
  if (isOlder && event.hash !== event.mapHash) return step(backOff(state, nowMs))
  const complete = joinChain({ ...state, version: laterOf(state.version, event.version) })
  const action: FollowerAction = { type: isNewer ? 'replace-map' : 'merge-snapshot' }
  const isShort = phase.need !== null && phase.need > complete.version.revision
  if (isShort || complete.chain !== null) return step(backOff(complete, nowMs), [action])
  const resynced = {
    type: 'report-resynced',
    reason: phase.reason,
    tookMs: nowMs - phase.sinceMs,
  } as const
  const settled = { ...complete, attempt: state.attempt + 1 }
  const confirmed = confirm(settled, event.ageMs, nowMs, 'snapshot')
  return step(confirmed, isOlder ? [resynced] : [action, resynced])
}

function onWoke(state: FollowerState, nowMs: number): FollowerStep {
  const { phase } = state
  if (phase.status === 'waiting' && nowMs >= phase.requestAtMs) {
    const request = state.requests + 1
    const { reason, need, sinceMs } = phase
    const timeoutAtMs = nowMs + REQUEST_TIMEOUT_MS
    const syncing = { status: 'syncing', reason, need, sinceMs, request, timeoutAtMs } as const
    return step({ ...state, requests: request, phase: syncing }, [
      { type: 'request-snapshot', request, timeoutMs: REQUEST_TIMEOUT_MS },
    ])
  }
  if (phase.status === 'syncing' && nowMs >= phase.timeoutAtMs) return step(backOff(state, nowMs))
  if (phase.status === 'following' && nowMs >= phase.silenceAtMs) {
    const silenceMs = Math.min(SILENCE_MAX_MS, state.silenceMs * 2)
    return step(wait({ ...state, silenceMs }, 'silence', state.version.revision, nowMs))
  }
  return step(state)
}

/** The map was shown to be current; ends a sync whose need that settles. */
function confirm(
  state: FollowerState,
  ageMs: number,
  nowMs: number,
  by: 'delta' | 'equal-hash' | 'snapshot' = 'delta',
): FollowerState {
  const confirmedAtMs = Math.max(state.confirmedAtMs ?? Number.NEGATIVE_INFINITY, nowMs - ageMs)
  const silenceMs = by === 'snapshot' ? state.silenceMs : SILENCE_MS
  const { phase } = state
  const isSync = phase.status === 'waiting' || phase.status === 'syncing'
  if (isSync && by !== 'snapshot') {
    const isShort = phase.need === null || phase.need > state.version.revision
    // An equal hash says nothing of a newer incarnation that was heard of.
    if (by === 'delta' ? isShort : phase.reason === 'incarnation') {
      return { ...state, confirmedAtMs, silenceMs }
    }
  }
  const following = { status: 'following', silenceAtMs: nowMs + silenceMs } as const
  const { version, partial, attempt, requests, seed } = state
  // Field by field, as each delta comes by here: a copy by `...` of this state costs as much as its merge.
  return {
    phase: following,
    version,
    chain: null,
    partial,
    confirmedAtMs,
    attempt,
    silenceMs,
    requests,
    seed,
  }
}

/** A publisher lives, though it said nothing new. */
function heard(state: FollowerState, nowMs: number): FollowerState {
  if (state.phase.status !== 'following') return state
  const phase = { status: 'following', silenceAtMs: nowMs + SILENCE_MS } as const
  return { ...state, silenceMs: SILENCE_MS, phase }
}

function needSync(
  state: FollowerState,
  reason: SyncReason,
  need: number | null,
  nowMs: number,
): FollowerState {
  const { phase } = state
  if (phase.status !== 'waiting' && phase.status !== 'syncing') {
    return wait(state, reason, need, nowMs)
  }
  const both = phase.need === null || need === null ? null : Math.max(phase.need, need)
  return { ...state, phase: { ...phase, need: both } }
}

/** Chooses the random moment of a request: soon at first, later after syncs that settled nothing. */
function wait(
  state: FollowerState,
  reason: SyncReason,
  need: number | null,
  nowMs: number,
): FollowerState {
  const seed = (Math.imul(state.seed, 1_664_525) + 1_013_904_223) >>> 0
  const fraction = seed / 2 ** 32
  const [fromMs, toMs] = state.attempt === 0 ? REQUEST_SPREAD_MS[reason] : backOffSpread(state)
  const requestAtMs = nowMs + Math.round(fromMs + fraction * (toMs - fromMs))
  return {
    ...state,
    seed,
    phase: { status: 'waiting', reason, need, sinceMs: nowMs, requestAtMs },
  }
}

function backOffSpread(state: FollowerState): readonly [number, number] {
  const delayMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MIN_MS * 2 ** (state.attempt - 1))
  return [delayMs / 2, delayMs]
}

/** The sync under way settled nothing: the same need, later. */
function backOff(state: FollowerState, nowMs: number): FollowerState {
  const { phase } = state
  if (phase.status !== 'syncing') return state
  const waiting = wait({ ...state, attempt: state.attempt + 1 }, phase.reason, phase.need, nowMs)
  return waiting.phase.status === 'waiting'
    ? { ...waiting, phase: { ...waiting.phase, sinceMs: phase.sinceMs } }
    : waiting
}

function isAwaited(state: FollowerState, request: number): boolean {
  return state.phase.status === 'syncing' && state.phase.request === request
}

function step(state: FollowerState, actions: readonly FollowerAction[] = []): FollowerStep {
  return { state, actions, wakeAtMs: wakeAtMs(state.phase) }
}

function wakeAtMs(phase: FollowerPhase): number | null {
  switch (phase.status) {
    case 'offline':
      return null
    case 'waiting':
      return phase.requestAtMs
    case 'syncing':
      return phase.timeoutAtMs
    case 'following':
      return phase.silenceAtMs
    default:
      return phase satisfies never
  }
}
