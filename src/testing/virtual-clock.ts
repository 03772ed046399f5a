/**
 * Time that moves only when it is told to. Everything in the in-memory world happens in a timer of one
 * virtual clock; between two timers all promises that can settle do settle. Two runs that schedule the
 * same things therefore take the same steps in the same order, and an hour passes in a moment.
 *
 * Not covered: code under test that waits for something outside this clock (real timers, sockets, the
 * thread pool). The clock cannot know of it and moves on without it.
 */
import { createTenureError } from '../core/tenure-error.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { PausableClock, type ProcessClock, type ProcessOptions } from './process-clock.ts'
import { type QueuedTimer, TimerQueue } from './timer-queue.ts'

export interface VirtualClock extends Clock {
  /** Runs everything due in the next `durationMs`, then stands exactly there. */
  advance(durationMs: number): Promise<void>
  /**
   * Runs timer after timer until the condition holds: true. False once `limitMs` has passed without it,
   * the clock then standing at that limit. The condition is looked at after each step.
   */
  runUntil(condition: () => boolean, options: { readonly limitMs: number }): Promise<boolean>
  /**
   * Runs until the promise settles and hands its value (or its rejection) on.
   * @throws TenureError `timed-out` when `limitMs` (default an hour) passes first.
   */
  run<T>(promise: Promise<T>, options?: { readonly limitMs: number }): Promise<T>
  /** Lets every promise settle that can, without moving time. */
  settle(): Promise<void>
  /** Moves the wall clock of the whole world; monotonic time and timers do not change. */
  jumpWall(byMs: number): void
  /** The clock of one process of this world, which can be stopped alone. */
  createProcess(options?: ProcessOptions): ProcessClock
  /** Timers that wait for their time. */
  readonly pending: number
  /** Timers fired so far: a measure of what a run did. */
  readonly steps: number
  /**
   * Hands an error that nobody caught to the process whose step it came out of. False: that step was no
   * process's, or its process has nobody to tell.
   */
  blame(error: unknown): boolean
}

/** How many steps are asked of the event loop at once. */
const STEPS_AT_ONCE_MAX = 64

/** The first of January 2024, UTC. */
const DEFAULT_START_WALL_MS = 1_704_067_200_000
const DEFAULT_RUN_LIMIT_MS = 3_600_000

/**
 * @example
 * const clock = createVirtualClock()
 * clock.schedule(1_000, () => console.log('a second has passed'))
 * await clock.advance(1_000)
 */
export function createVirtualClock(options: { readonly startWallMs?: number } = {}): VirtualClock {
  return new QueueClock(options.startWallMs ?? DEFAULT_START_WALL_MS)
}

class QueueClock implements VirtualClock {
  steps = 0
  readonly #timers = new TimerQueue()
  #nowMs = 0
  #wallAtStartMs: number
  #running = false
  /** Whose step runs, or ran last. */
  #stepOf: PausableClock | null = null

  constructor(startWallMs: number) {
    this.#wallAtStartMs = startWallMs
  }

  get pending(): number {
    return this.#timers.pending
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return Math.floor(this.#wallAtStartMs + this.#nowMs)
  }

  jumpWall(byMs: number): void {
    this.#wallAtStartMs += byMs
  }

  schedule(delayMs: number, callback: () => void): Timer {
    return this.#timers.add(this.#nowMs + Math.max(0, delayMs), callback)
  }

  async advance(durationMs: number): Promise<void> {
    await this.runUntil(() => false, { limitMs: durationMs })
  }

  runUntil(condition: () => boolean, { limitMs }: { readonly limitMs: number }): Promise<boolean> {
    if (this.#running) {
      const message = 'the virtual clock is already being run'
      return Promise.reject(createTenureError('invalid-argument', message))
    }
    this.#running = true
    const untilMs = this.#nowMs + limitMs
    return new Promise<boolean>((resolve, reject) => {
      const end = (tell: () => void) => {
        this.#running = false
        tell()
      }
      stepAfterStep(() => {
        try {
          const held = this.#step(condition, untilMs)
          if (held !== null) end(() => resolve(held))
          return held === null
        } catch (error: unknown) {
          end(() => reject(error))
          return false
        }
      })
    })
  }

  async run<T>(
    promise: Promise<T>,
    { limitMs }: { readonly limitMs: number } = { limitMs: DEFAULT_RUN_LIMIT_MS },
  ): Promise<T> {
    let settled = false
    const mark = () => {
      settled = true
    }
    promise.then(mark, mark)
    if (!(await this.runUntil(() => settled, { limitMs }))) {
      throw createTenureError('timed-out', `nothing settled within ${limitMs} virtual ms`)
    }
    return promise
  }

  /** A turn of the event loop begins only once every microtask has run. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve)
    })
  }

  createProcess(options: ProcessOptions = {}): ProcessClock {
    const began = (process: PausableClock) => {
      this.#stepOf = process
    }
    return new PausableClock(this, began, options)
  }

  blame(error: unknown): boolean {
    return this.#stepOf?.uncaught(error) ?? false
  }

  /** One step: whether the condition holds or time is up, or null after a timer has fired. */
  #step(condition: () => boolean, untilMs: number): boolean | null {
    if (condition()) return true
    const next = this.#timers.peek()
    if (next === null || next.atMs > untilMs) {
      this.#nowMs = untilMs
      return false
    }
    this.#fire(next)
    return null
  }

  #fire(timer: QueuedTimer): void {
    this.#timers.take()
    this.#nowMs = timer.atMs
    this.#stepOf = null
    this.steps += 1
    timer.fire()
  }
}

/**
 * Calls `step` until it says false. Before each call every promise that can settle has settled: Node does
 * that between two immediates. Many are queued at once, for a whole turn of the event loop between two
 * steps would cost more than most steps do.
 */
function stepAfterStep(step: () => boolean): void {
  let isOver = false
  let atOnce = 1
  let queued = 0
  const queue = () => {
    queued = atOnce
    for (let index = 0; index < atOnce; index += 1) setImmediate(take)
    atOnce = Math.min(STEPS_AT_ONCE_MAX, atOnce * 2)
  }
  const take = () => {
    queued -= 1
    if (!isOver) isOver = !step()
    if (queued === 0 && !isOver) queue()
  }
  queue()
}
