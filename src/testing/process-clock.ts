/**
 * One process's view of the world's time, by which that process alone can be stopped:
 *
 *   running <-> paused     by `pause` and `resume` (SIGSTOP, SIGCONT), or `stall` for a while
 *   any -> killed          for good (SIGKILL, or an error that nobody caught)
 *
 * Its monotonic time runs on while it is paused. Whatever reaches a process in the in-memory world does
 * so in a timer of its clock, so a paused process hears nothing. Not stopped: a handler that waits for
 * something else, such as a promise that the test itself resolves.
 */
import type { Clock, Timer } from '../ports/clock.ts'

export interface ProcessClock extends Clock {
  readonly status: 'running' | 'paused' | 'killed'
  /** SIGSTOP: no timer of this process fires, and nothing reaches it, until `resume`. */
  pause(): void
  /** SIGCONT: what came due meanwhile fires now, in the order in which it came due. */
  resume(): void
  /** The event loop is blocked: as a pause that ends by itself. Ends no pause that is longer. */
  stall(durationMs: number): void
  /** SIGKILL: no timer of this process ever fires again. */
  kill(): void
  /** Moves this process's wall clock alone. */
  jumpWall(byMs: number): void
  /** Timers of this process that wait for their time, or for its resumption. */
  readonly pending: number
}

export type ProcessOptions = {
  /** Takes an error that a timer of this process threw; without it, the run of the clock throws it. */
  readonly onUncaught?: (error: unknown) => void
}

export class PausableClock implements ProcessClock {
  pending = 0
  readonly #world: Clock
  readonly #began: (process: PausableClock) => void
  readonly #onUncaught: ((error: unknown) => void) | null
  #wallOffsetMs = 0
  #isPaused = false
  #isKilled = false
  /** Until then its event loop is blocked. */
  #stalledUntilMs = Number.NEGATIVE_INFINITY
  #held: ProcessTimer[] = []

  /** `began` is told at the beginning of each step of this process. */
  constructor(world: Clock, began: (process: PausableClock) => void, options: ProcessOptions) {
    this.#world = world
    this.#began = began
    this.#onUncaught = options.onUncaught ?? null
  }

  get status(): ProcessClock['status'] {
    if (this.#isKilled) return 'killed'
    return this.#isPaused || this.#isStalled ? 'paused' : 'running'
  }

  monotonicMs(): number {
    return this.#world.monotonicMs()
  }

  wallMs(): number {
    return this.#world.wallMs() + this.#wallOffsetMs
  }

  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const timer = new ProcessTimer(this, callback)
    if (this.#isKilled) return timer
    this.pending += 1
    timer.inWorld = this.#world.schedule(delayMs, () => this.due(timer))
    return timer
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#releaseHeld()
  }

  stall(durationMs: number): void {
    const untilMs = this.monotonicMs() + durationMs
    if (untilMs <= this.#stalledUntilMs) return
    this.#stalledUntilMs = untilMs
    this.#world.schedule(durationMs, () => this.#releaseHeld())
  }

  kill(): void {
    this.#isKilled = true
    this.#held = []
    this.pending = 0
  }

  uncaught(error: unknown): boolean {
    if (this.#onUncaught === null) return false
    this.#onUncaught(error)
    return true
  }

  /** The timer's time has come. */
  due(timer: ProcessTimer): void {
    if (timer.callback === null || this.#isKilled) return
    if (this.#isPaused || this.#isStalled) {
      this.#held.push(timer)
      return
    }
    this.pending -= 1
    const { callback } = timer
    timer.callback = null
    this.#began(this)
    try {
      callback()
    } catch (error: unknown) {
      if (!this.uncaught(error)) throw error
    }
  }

  get #isStalled(): boolean {
    return this.#stalledUntilMs > this.#world.monotonicMs()
  }

  /** Each in a step of its own, so that a pause in between holds the rest back again. */
  #releaseHeld(): void {
    if (this.#isPaused || this.#isStalled || this.#isKilled) return
    const held = this.#held
    this.#held = []
    for (const timer of held) this.#world.schedule(0, () => this.due(timer))
  }
}

class ProcessTimer implements Timer {
  /** Null once cancelled or fired. */
  callback: (() => void) | null
  inWorld: Timer | null = null
  readonly #process: PausableClock

  constructor(process: PausableClock, callback: () => void) {
    this.#process = process
    this.callback = callback
  }

  cancel(): void {
    if (this.callback === null) return
    this.callback = null
    this.inWorld?.cancel()
    if (this.#process.status !== 'killed') this.#process.pending -= 1
  }
}
