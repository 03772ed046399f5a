/**
 * The gate of one grant: may a piece of work start, and how much of it is under way.
 *
 *   acquiring ──▶ open ◀──▶ suspect ──▶ draining ──▶ released
 *        └───────────┴─────────┴───────────┴───────▶ lost
 *
 * Admission is a comparison of two numbers: the status, and the monotonic clock against the deadline of
 * the *token's own* session (S6). It is looked at on every admission, so a process that was stopped or
 * whose event loop was blocked finds the gate closed at its first look. Between the session's suspect
 * time and its deadline new work waits: the next proof reopens, the deadline refuses.
 *
 * I1  nothing is admitted unless the status is `open` and now < suspectAtMs <= deadlineMs.
 * I2  `lost` and `released` are final.
 */
import type { Clock } from '../ports/clock.ts'
import type { WorkRefusal } from '../ports/telemetry.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import type { SessionDriver } from './session-driver.ts'

export type GateStatus = 'acquiring' | 'open' | 'suspect' | 'draining' | 'released' | 'lost'

/** What an attempt to enter met: null admitted, `wait` ask again after {@link Gate.change}. */
export type Entrance = null | 'wait' | WorkRefusal

export class Gate {
  status: GateStatus = 'acquiring'
  /** Work admitted and not yet settled. */
  inFlight = 0
  private readonly session: SessionDriver
  private readonly clock: Clock
  private readonly limit: number
  private changed: Deferred<void> | null = null
  private emptied: Deferred<void> | null = null

  /** @param limit most work in flight at once; `Infinity` for none. */
  constructor(session: SessionDriver, clock: Clock, limit: number) {
    this.session = session
    this.clock = clock
    this.limit = limit
  }

  /** Admits one piece of work, which must end with {@link leave}, or says why not. */
  enter(): Entrance {
    if (this.status !== 'open') return this.refusal()
    const nowMs = this.clock.monotonicMs()
    if (nowMs >= this.session.suspectAtMs) {
      if (nowMs < this.session.deadlineMs) return 'wait'
      this.session.look()
      return 'lost'
    }
    if (this.inFlight >= this.limit) return 'wait'
    this.inFlight += 1
    return null
  }

  leave(): void {
    this.inFlight -= 1
    if (this.inFlight === 0) {
      this.emptied?.resolve()
      this.emptied = null
    }
    if (this.changed !== null) this.wake()
  }

  /** True while the token is certainly held: work in flight may commit. */
  holds(): boolean {
    if (this.status === 'lost' || this.status === 'released' || this.status === 'suspect')
      return false
    if (this.clock.monotonicMs() < this.session.deadlineMs) return true
    this.session.look()
    return false
  }

  /** A final status stays. */
  become(status: GateStatus): void {
    if (this.status === 'lost' || this.status === 'released') return
    this.status = status
    this.wake()
  }

  /** Resolves at the next change of status, end of work or proof of the session. */
  change(): Promise<void> {
    this.changed ??= createDeferred<void>()
    return this.changed.promise
  }

  /** Lets waiting work look again. */
  wake(): void {
    this.changed?.resolve()
    this.changed = null
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    if (this.inFlight === 0) return Promise.resolve()
    this.emptied ??= createDeferred<void>()
    return this.emptied.promise
  }

  private refusal(): Entrance {
    switch (this.status) {
      case 'suspect':
        return 'wait'
      case 'acquiring':
      case 'draining':
      case 'lost':
        return this.status
      case 'released':
        return 'not-owner'
      case 'open':
        return null
      default:
        return this.status satisfies never
    }
  }
}
