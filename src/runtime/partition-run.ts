/**
 * One grant at work: the handle in the author's hands and the life of the four handlers.
 *
 *   acquire ──▶ run ⟲ (a throw backs off and runs again) ──▶ drain: no new work, wait for what is in
 *      │ throws | overdue                                    flight and for `run` ──▶ release ──▶ drained
 *      ▼                                                                │ throws: recorded, still drained
 *   given up                    at any moment: lost ──▶ signals abort, `lost` runs, no drain
 *
 * I1  `run` starts only after `acquire` settled and the gate opened; `release` only after all work and
 *     `run` have settled; `drained` only after `release` has (S5).
 * I2  after `lose` nothing is started but `lost`; the end of this grant (`settled`) waits for whatever
 *     still runs, so that the next grant of the same partition here never overlaps with it.
 */
import type { GiveUp, Grant } from '../core/ownership-state.ts'
import { createTenureError, isTenureError, TenureError } from '../core/tenure-error.ts'
import type { Position, Token } from '../core/token.ts'
import { comparePositions } from '../core/token.ts'
import type { Clock } from '../ports/clock.ts'
import type { LossCause, WorkRefusal } from '../ports/telemetry.ts'
import { createDeferred } from './deferred.ts'
import type { Gate } from './gate.ts'
import { LateSignal } from './late-signal.ts'
import { pause } from './waiting.ts'
import type { WorkSlots } from './work-slots.ts'
import type { Partition, PartitionHandlers } from './worker-options.ts'

export type RunReporter = {
  acquired(): void
  acquireFailed(error: unknown): void
  serving(acquireMs: number): void
  runFailed(error: unknown, retryMs: number): void
  handlerFailed(handler: 'release' | 'lost', error: unknown): void
  draining(giveUp: GiveUp, inFlight: number): void
  drained(): void
  refused(reason: WorkRefusal): void
  fenceAhead(highest: Position): void
}

/** One for all: thousands may be given up in a second, and an error is dear to make. */
const GIVEN_UP = createTenureError('draining', 'the partition is being given up')

const RUN_BACK_OFF_FIRST_MS = 100
/** What `run` needs may be away for long; it is to go on within 2T + 5 s of its return (L4). */
const RUN_BACK_OFF_MAX_MS = 5000

export class PartitionRun<Cursor> implements Partition {
  readonly token: Token
  readonly grant: Grant
  readonly gate: Gate
  /** Resolves when nothing of this grant runs any more. */
  readonly settled: Promise<void>
  private readonly handlers: PartitionHandlers<Cursor>
  private readonly slots: WorkSlots
  private readonly clock: Clock
  private readonly reporter: RunReporter
  private readonly drainingSignal = new LateSignal()
  private readonly lostSignal = new LateSignal()
  /** Resolves when the grant is to end, in whatever way. */
  private readonly ending = createDeferred<void>()
  private cursor: { readonly value: Cursor } | null = null
  private lostCause: LossCause | null = null
  private lostEnded: Promise<void> = Promise.resolve()
  private givingUp = false
  private runFailures = 0

  constructor(options: {
    readonly token: Token
    readonly grant: Grant
    readonly gate: Gate
    readonly handlers: PartitionHandlers<Cursor>
    readonly slots: WorkSlots
    readonly clock: Clock
    readonly reporter: RunReporter
    /** The end of the grant before this one in this process. */
    readonly after: Promise<void>
  }) {
    this.token = options.token
    this.grant = options.grant
    this.gate = options.gate
    this.handlers = options.handlers
    this.slots = options.slots
    this.clock = options.clock
    this.reporter = options.reporter
    this.settled = this.live(options.after)
  }

  get id(): number {
    return this.token.partition
  }

  get draining(): AbortSignal {
    return this.drainingSignal.signal
  }

  get signal(): AbortSignal {
    return this.lostSignal.signal
  }

  get inFlight(): number {
    return this.gate.inFlight
  }

  check(): void {
    if (this.gate.holds()) return
    const cause = this.lostCause ?? (this.gate.status === 'suspect' ? 'superseded' : 'deadline')
    throw lostError(this.token, cause)
  }

  refused({ incarnation, generation }: Position): void {
    const highest = { incarnation, generation }
    // A resource that has seen less refuses for another reason: it was not sealed, or is another's.
    if (comparePositions(highest, this.token) >= 0) this.reporter.fenceAhead(highest)
  }

  async work<T>(fn: (partition: Partition) => T | Promise<T>): Promise<T> {
    if (!this.admits()) await this.enter()
    try {
      return await fn(this)
    } finally {
      this.slots.free()
      this.gate.leave()
    }
  }

  /** Revoked, disabled, leaving: what is under way finishes, nothing new begins. */
  drain(giveUp: GiveUp): void {
    this.reporter.draining(giveUp, this.inFlight)
    this.givingUp = true
    this.gate.become('draining')
    this.drainingSignal.fire(() => GIVEN_UP)
    this.ending.resolve()
  }

  /** Ownership ended without a drain. */
  lose(cause: LossCause): void {
    // Once released there is nothing to lose.
    if (this.lostCause !== null || this.gate.status === 'released') return
    this.lostCause = cause
    this.gate.become('lost')
    let error: TenureError | null = null
    const reason = () => {
      error ??= lostError(this.token, cause)
      return error
    }
    this.drainingSignal.fire(reason)
    this.lostSignal.fire(reason)
    this.ending.resolve()
    // At once, whatever `run` is doing; an acquire that is still loading is told when it has loaded.
    if (this.cursor !== null) this.lostEnded = this.callLost(cause)
  }

  private async live(after: Promise<void>): Promise<void> {
    await after
    const beganAtMs = this.clock.monotonicMs()
    if (!this.over() && !(await this.acquire())) return
    if (this.lostCause !== null) {
      await this.callLost(this.lostCause)
      return
    }
    if (!this.over()) {
      // The gate is opened by the driver, which may refuse: the deadline may have passed meanwhile.
      this.reporter.acquired()
      if (this.gate.status === 'open') this.reporter.serving(this.clock.monotonicMs() - beganAtMs)
    }
    const running = this.runUntilOver()
    await this.ending.promise
    await running
    await this.gate.idle()
    if (this.lostCause === null) await this.release()
    await this.lostEnded
  }

  /** False when it failed: then nothing was started and nothing is to be ended. */
  private async acquire(): Promise<boolean> {
    try {
      this.cursor = { value: (await this.handlers.acquire?.(this)) as Cursor }
      return true
    } catch (error: unknown) {
      if (this.lostCause !== null) return false
      // A drain during acquire ends it, however it ends: nothing was admitted.
      if (this.givingUp) this.finish()
      else this.reporter.acquireFailed(error)
      return false
    }
  }

  private async runUntilOver(): Promise<void> {
    const { run } = this.handlers
    if (run === undefined || this.cursor === null) return
    while (!this.over()) {
      const beganAtMs = this.clock.monotonicMs()
      try {
        await run(this, this.cursor.value)
        return
      } catch (error: unknown) {
        if (this.over() || isTenureError(error, 'lost')) return
        if (isTenureError(error, 'work-refused')) {
          await pause(this.clock, RUN_BACK_OFF_FIRST_MS, this.draining)
          continue
        }
        // One that ran for long before it failed has not failed in a row.
        if (this.clock.monotonicMs() - beganAtMs > RUN_BACK_OFF_MAX_MS) this.runFailures = 0
        const doubled = RUN_BACK_OFF_FIRST_MS * 2 ** Math.min(this.runFailures, 20)
        const retryMs = Math.min(RUN_BACK_OFF_MAX_MS, doubled)
        this.runFailures += 1
        this.reporter.runFailed(error, retryMs)
        await pause(this.clock, retryMs, this.draining)
      }
    }
  }

  private async release(): Promise<void> {
    try {
      if (this.cursor !== null) await this.handlers.release?.(this, this.cursor.value)
    } catch (error: unknown) {
      this.reporter.handlerFailed('release', error)
    }
    if (this.lostCause === null) this.finish()
  }

  private finish(): void {
    this.gate.become('released')
    this.reporter.drained()
  }

  private async callLost(cause: LossCause): Promise<void> {
    if (this.cursor === null) return
    try {
      await this.handlers.lost?.(this, this.cursor.value, cause)
    } catch (error: unknown) {
      this.reporter.handlerFailed('lost', error)
    }
  }

  /** Admits at once, as mostly: then the work begins in the same turn as the look at the clock. */
  private admits(): boolean {
    if (!this.slots.hasRoom() || this.gate.enter() !== null) return false
    this.slots.take()
    return true
  }

  private async enter(): Promise<void> {
    for (;;) {
      const entrance = this.slots.hasRoom() ? this.gate.enter() : this.closedOrFull()
      if (entrance === null) {
        this.slots.take()
        return
      }
      if (entrance !== 'wait') {
        this.reporter.refused(entrance)
        throw refusedError(this.token, entrance)
      }
      await Promise.race([this.gate.change(), this.slots.change()])
    }
  }

  /** No free slot in the worker: wait for one, unless the gate has closed. */
  private closedOrFull() {
    const { status } = this.gate
    return status === 'open' || status === 'suspect' ? ('wait' as const) : this.gate.enter()
  }

  private over(): boolean {
    return this.givingUp || this.lostCause !== null
  }
}

function lostError(token: Token, cause: LossCause): TenureError {
  return new TenureError('lost', `partition ${token.partition} is no longer held here: ${cause}`, {
    details: { cause, partition: token.partition },
  })
}

function refusedError(token: Token, reason: WorkRefusal): TenureError {
  return new TenureError('work-refused', `partition ${token.partition} takes no work: ${reason}`, {
    details: { reason, partition: token.partition },
  })
}
