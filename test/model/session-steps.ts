/**
 * Steps of the production session machine, each taken once. Its moments are kept relative to now, so that a
 * session that has waited long looks like any other; a deadline that has passed is just that.
 */

import type {
  SessionEnd,
  SessionEvent,
  SessionSettings,
  SessionState,
  SessionStep,
} from '../../src/core/session.ts'
import { startSession, stepSession } from '../../src/core/session.ts'
import { Gate } from '../../src/runtime/gate.ts'
import type { SessionDriver } from '../../src/runtime/session-driver.ts'
import { Broken } from './broken.ts'
import { sessionOf, sessionText } from './cast.ts'
import { Memory, pair, Table } from './table.ts'

/** T, and the least time that passes when any does: a third of it, as often as a session is proved. */
export const TTL_MS = 6000
export const TICK_MS = 2000
export const TICKS_OF_TTL = TTL_MS / TICK_MS
const SETTINGS: SessionSettings = { ttlMs: TTL_MS, marginMs: 1000 }

type Live = SessionState & { readonly status: 'live' }

export type SessionEntry = {
  readonly state: Live
  /** The session's number. */
  readonly session: number
  /** Now is before its deadline. */
  readonly live: boolean
  /** The gate of a grant that it holds admits work. */
  readonly admits: boolean
}

export type SessionOutcome = {
  /** 0: it has ended. */
  readonly session: number
  readonly end: SessionEnd['cause'] | null
}

export class SessionSteps {
  private readonly table = new Table<SessionEntry>()
  private readonly outcomes = new Map<string, SessionOutcome>()
  private readonly shifted = new Memory<number>()

  of(id: number): SessionEntry {
    return this.table.of(id)
  }

  isLive(id: number): boolean {
    return id !== 0 && this.table.of(id).live
  }

  /** A session that was opened and claimed without a hitch, now. */
  opened(session: number): number {
    const start = startSession(sessionText(session), SETTINGS, 0)
    const claiming = check(start.state, { type: 'opened', ttlMs: TTL_MS })
    return this.id(check(claiming.state, { type: 'claimed' }).state as Live)
  }

  /** One event, now. */
  step(id: number, event: SessionEvent): SessionOutcome {
    return this.once(`${id} ${JSON.stringify(event)}`, () => {
      const { state } = this.table.of(id)
      return this.outcome(check(state, event))
    })
  }

  /** A round that is due: renewed at once and proved, or told what the proof found instead. */
  round(id: number, found: 'alive' | 'gone' | 'evicted' | 'hangs' | 'fails'): SessionOutcome {
    return this.once(`${id} ${found}`, () => {
      const renewing = check(this.table.of(id).state, { type: 'wake' })
      const { state } = renewing
      if (state.status !== 'live' || state.round !== 'renewing') return this.outcome(renewing)
      if (found === 'fails')
        return this.outcome(check(state, { type: 'round-failed', sentAtMs: 0 }))
      // An old store acknowledges the keepalive of a dead lease; the proof tells.
      const proving = check(state, { type: 'renewed', sentAtMs: 0, ttlMs: TTL_MS })
      if (found === 'hangs') return this.outcome(proving)
      const answer: SessionEvent =
        found === 'alive'
          ? { type: 'proved', sentAtMs: 0 }
          : { type: 'disproved', sentAtMs: 0, evicted: found === 'evicted' }
      return this.outcome(check(proving.state, answer))
    })
  }

  /** Whether a round would begin now. */
  isDue(id: number): boolean {
    const { state, live } = this.table.of(id)
    return live && state.round === 'resting' && state.nextAtMs <= 0
  }

  /** The reply of a proof hangs: when its renewal was sent; null: none does. */
  hangsSince(id: number): number | null {
    const { state, live } = this.table.of(id)
    return live && state.round === 'proving' ? state.sentAtMs : null
  }

  later(id: number, durationMs: number): number {
    return this.shifted.of(pair(id, durationMs), () => this.shift(id, durationMs))
  }

  private shift(id: number, durationMs: number): number {
    const { state } = this.table.of(id)
    return this.id({
      ...state,
      deadlineMs: state.deadlineMs - durationMs,
      suspectAtMs: state.suspectAtMs - durationMs,
      sentAtMs: state.sentAtMs - durationMs,
      nextAtMs: state.nextAtMs - durationMs,
    })
  }

  /** Its deadline passes before anybody looks. */
  expired(id: number): number {
    return this.later(id, Math.max(0, this.table.of(id).state.deadlineMs))
  }

  private id(given: Live): number {
    // Past its deadline a session only ends, whatever else is true of it.
    const state: Live =
      given.deadlineMs > 0
        ? { ...given, nextAtMs: Math.max(given.nextAtMs, -TICK_MS) }
        : { ...given, deadlineMs: 0, suspectAtMs: 0, sentAtMs: 0, nextAtMs: 0, round: 'resting' }
    return this.table.id(JSON.stringify(state), () => ({
      state,
      session: sessionOf(state.session),
      live: state.deadlineMs > 0,
      admits: admits(state),
    }))
  }

  private outcome({ state }: SessionStep): SessionOutcome {
    if (state.status === 'live') return { session: this.id(state), end: null }
    return { session: 0, end: state.status === 'ended' ? state.end.cause : null }
  }

  private once(key: string, make: () => SessionOutcome): SessionOutcome {
    let outcome = this.outcomes.get(key)
    if (outcome === undefined) {
      outcome = make()
      this.outcomes.set(key, outcome)
    }
    return outcome
  }
}

/** The gate of the worker decides, over the deadline of the grant's own session. */
function admits({ session, deadlineMs, suspectAtMs }: Live): boolean {
  const looks = { session, deadlineMs, suspectAtMs, look: () => {} } as unknown as SessionDriver
  const clock = { monotonicMs: () => 0 } as ConstructorParameters<typeof Gate>[1]
  const gate = new Gate(looks, clock, Number.POSITIVE_INFINITY)
  gate.become('open')
  return gate.enter() === null
}

/** One step, and what no step may do. */
function check(before: SessionState, event: SessionEvent): SessionStep {
  const step = stepSession(before, event, SETTINGS, 0)
  const { state, actions } = step
  const closes = actions.some(({ type }) => type === 'close-lease')
  if (closes && state.status !== 'ended') {
    throw new Broken('S10', 'a lease is closed before its session has ended here')
  }
  if (before.status === 'ended' && state.status !== 'ended') {
    throw new Broken('S6', 'an ended session came back')
  }
  return step
}
