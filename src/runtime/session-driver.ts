/**
 * Drives one session machine over the store and the clock: performs its actions, feeds replies back,
 * keeps its one timer, and offers the deadline to every gate as plain numbers, so that admission is a
 * comparison and nothing more.
 */
import type { SessionId } from '../core/ids.ts'
import type {
  SessionAction,
  SessionEnd,
  SessionEvent,
  SessionKeys,
  SessionSettings,
  SessionState,
  SessionStep,
} from '../core/session.ts'
import { claimTransaction, proofTransaction, startSession, stepSession } from '../core/session.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'

export type SessionListener = {
  opened(session: SessionId, ttlMs: number): void
  proved(roundTripMs: number, leftMs: number): void
  renewalFailed(detail: string): void
  ended(end: SessionEnd): void
}

/** Read by gates on every admission. */
export interface SessionDeadline {
  readonly session: SessionId
  /** Monotonic time after which nothing may run; -Infinity once ended or before live. */
  readonly deadlineMs: number
  /** Monotonic time after which new work waits for the next proof. */
  readonly suspectAtMs: number
}

export class SessionDriver implements SessionDeadline {
  readonly session: SessionId
  deadlineMs = Number.NEGATIVE_INFINITY
  suspectAtMs = Number.NEGATIVE_INFINITY
  private state: SessionState
  private timer: Timer | null = null
  private closing: Promise<void> = Promise.resolve()
  private readonly store: Store
  private readonly clock: Clock
  private readonly keys: SessionKeys
  private readonly value: string
  private readonly settings: SessionSettings
  private readonly listener: SessionListener

  constructor(options: {
    readonly session: SessionId
    readonly store: Store
    readonly clock: Clock
    readonly keys: SessionKeys
    /** What to put under the claimed key. */
    readonly value: string
    readonly settings: SessionSettings
    readonly listener: SessionListener
  }) {
    this.session = options.session
    this.store = options.store
    this.clock = options.clock
    this.keys = options.keys
    this.value = options.value
    this.settings = options.settings
    this.listener = options.listener
    const step = startSession(this.session, this.settings, this.clock.monotonicMs())
    this.state = step.state
    this.perform(step)
  }

  get isLive(): boolean {
    return this.state.status === 'live' && this.clock.monotonicMs() < this.deadlineMs
  }

  /** Ends the session locally at once, then closes its lease; resolves when the store answered. */
  async close(cause: 'closed' | 'evicted' | 'drain-overdue' | 'invariant-broken'): Promise<void> {
    this.handle({ type: 'close', cause })
    // Called out of `ended` it comes before the lease is being closed: that follows in this same turn.
    await Promise.resolve()
    await this.closing
  }

  /** Looks at the clock now: after a pause, the first look ends the session. */
  look(): void {
    this.handle({ type: 'wake' })
  }

  private handle(event: SessionEvent): void {
    const nowMs = this.clock.monotonicMs()
    this.perform(stepSession(this.state, event, this.settings, nowMs))
  }

  private perform(step: SessionStep): void {
    this.state = step.state
    const live = this.state.status === 'live' ? this.state : null
    this.deadlineMs = live?.deadlineMs ?? Number.NEGATIVE_INFINITY
    this.suspectAtMs = live?.suspectAtMs ?? Number.NEGATIVE_INFINITY
    this.timer?.cancel()
    this.timer = null
    if (step.wakeAtMs !== null) {
      const delayMs = Math.max(0, step.wakeAtMs - this.clock.monotonicMs())
      this.timer = this.clock.schedule(delayMs, () => this.handle({ type: 'wake' }))
    }
    for (const action of step.actions) this.act(action)
  }

  private act(action: SessionAction): void {
    switch (action.type) {
      case 'open-lease':
        void this.openLease(action.ttlMs)
        return
      case 'claim':
        void this.claim()
        return
      case 'renew':
        void this.renew(action.sentAtMs, action.timeoutMs)
        return
      case 'prove':
        void this.prove(action.sentAtMs, action.timeoutMs)
        return
      case 'close-lease':
        this.closing = this.closeLease()
        return
      case 'opened':
        this.listener.opened(action.session, action.ttlMs)
        return
      case 'proved':
        this.listener.proved(action.roundTripMs, action.leftMs)
        return
      case 'ended':
        this.listener.ended(action.end)
        return
      default:
        action satisfies never
    }
  }

  private async openLease(ttlMs: number): Promise<void> {
    const reply = await this.store.openLease(this.session, ttlMs, { timeoutMs: ttlMs / 3 })
    if (reply.ok) this.handle({ type: 'opened', ttlMs: reply.value.ttlMs })
    else this.handle({ type: 'open-failed', detail: reply.detail })
  }

  private async claim(): Promise<void> {
    const transaction = claimTransaction(this.keys, this.session, this.value)
    const reply = await this.store.transact(transaction, { timeoutMs: this.settings.ttlMs / 3 })
    if (!reply.ok) {
      // A refusal means the lease is gone again: the next look at the key settles that too.
      this.handle({ type: 'claim-unknown' })
    } else if (reply.value.succeeded) this.handle({ type: 'claimed' })
    else {
      const got = reply.value.results[0]
      this.handle({ type: 'claim-refused', stands: got?.type === 'get' ? got.found : null })
    }
  }

  private async renew(sentAtMs: number, timeoutMs: number): Promise<void> {
    const reply = await this.store.renewLease(this.session, { timeoutMs })
    if (reply.ok) this.handle({ type: 'renewed', sentAtMs, ttlMs: reply.value.ttlMs })
    else this.roundFailed(sentAtMs, reply.detail)
  }

  private async prove(sentAtMs: number, timeoutMs: number): Promise<void> {
    const transaction = proofTransaction(this.keys, this.session)
    const reply = await this.store.transact(transaction, { timeoutMs })
    if (!reply.ok) this.roundFailed(sentAtMs, reply.detail)
    else if (reply.value.succeeded) this.handle({ type: 'proved', sentAtMs })
    else {
      const got = reply.value.results[1]
      const evicted = got?.type === 'get' && got.found !== null
      this.handle({ type: 'disproved', sentAtMs, evicted })
    }
  }

  private roundFailed(sentAtMs: number, detail: string): void {
    this.listener.renewalFailed(detail)
    this.handle({ type: 'round-failed', sentAtMs })
  }

  private async closeLease(): Promise<void> {
    const { ttlMs } = this.settings
    // Once more when it certainly was not executed; otherwise the lease runs out by itself.
    for (let attempt = 0; attempt < 2; attempt++) {
      const reply = await this.store.closeLease(this.session, { timeoutMs: ttlMs / 3 })
      if (reply.ok || reply.reason !== 'not-executed') return
    }
  }
}
