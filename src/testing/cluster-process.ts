/**
 * One process of a test cluster through all its lives, and the switches by which a test lets it fail:
 *
 *   starting -> running -> ended          by its own will: stopped, or failed as a real one would
 *      any   -> paused -> …               `pause`, `stall`: nothing of it runs, nothing reaches it
 *      any   -> killed                    `kill`, or an error that nobody caught
 *   ended, killed -> starting             `restart`, `respawn`: another life with connections of its own
 *
 * A process that has ended is gone a second later, whatever it still runs, as `startWorker` does it.
 */
import { isTenureError } from '../core/tenure-error.ts'
import type { Random } from '../ports/random.ts'
import type { Telemetry, TelemetryEvent } from '../ports/telemetry.ts'
import { createDeferred, type Deferred } from '../runtime/deferred.ts'
import { noBroadcastFaults, noStoreFaults } from './faults.ts'
import type { MemoryBroadcast } from './memory-broadcast.ts'
import type { MemoryEtcd } from './memory-etcd.ts'
import type { MemoryNats } from './memory-nats.ts'
import type { MemoryStore } from './memory-store.ts'
import type { ProcessClock } from './process-clock.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { CutWay, Neighbour, ProcessState, TestProcess, TimedEvent } from './test-process.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** What one life has: its clock, connections and streams of its own. */
export type Life = {
  readonly number: number
  readonly clock: ProcessClock
  readonly store: MemoryStore
  readonly broadcast: MemoryBroadcast
  readonly random: Random
  readonly telemetry: Telemetry
}

/** What runs in one life. */
export type Running<Parts> = {
  readonly parts: Parts
  /** Ends by itself: resolves when it has ended well, rejects when not; null: never does. */
  readonly done: Promise<void> | null
  /** As SIGTERM does. */
  stop(): Promise<void>
  /** What is still done after an error that nobody caught. */
  crash(): void
}

export type ProcessWorld = {
  readonly clock: VirtualClock
  readonly etcd: MemoryEtcd
  readonly nats: MemoryNats
  readonly random: SeededRandom
  readonly onEvent: (name: string, event: TelemetryEvent) => void
}

/** How long a real process lives on after its end, for last words. */
const LAST_WORDS_MS = 1_000
const EVENTS_KEPT = 4_000

export class ClusterProcess<Parts extends object> implements TestProcess {
  readonly name: string
  readonly events: TimedEvent[] = []
  exitError: Error | null = null
  failure: Error | null = null
  readonly #world: ProcessWorld
  readonly #start: (life: Life) => Running<Parts> | Promise<Running<Parts>>
  #life: Life
  #running: Running<Parts> | null = null
  #started: Deferred<void> = createDeferred<void>()
  #hasEnded = false

  constructor(
    world: ProcessWorld,
    name: string,
    start: (life: Life) => Running<Parts> | Promise<Running<Parts>>,
  ) {
    this.#world = world
    this.name = name
    this.#start = start
    this.#life = this.#open(1)
    this.#begin()
  }

  get life(): number {
    return this.#life.number
  }

  get process(): ProcessClock {
    return this.#life.clock
  }

  get store(): MemoryStore {
    return this.#life.store
  }

  get broadcast(): MemoryBroadcast {
    return this.#life.broadcast
  }

  get started(): Promise<void> {
    return this.#started.promise
  }

  get state(): ProcessState {
    if (this.#hasEnded) return 'ended'
    const { status } = this.#life.clock
    if (status !== 'running') return status
    return this.#running === null ? 'starting' : 'running'
  }

  /** What runs in this life. */
  get parts(): Parts {
    if (this.#running !== null) return this.#running.parts
    throw new Error(`${this.name} has not started${this.#why()}`)
  }

  /** Null until it has started. */
  get partsIfStarted(): Parts | null {
    return this.#running?.parts ?? null
  }

  pause(): void {
    this.#life.clock.pause()
  }

  resume(): void {
    this.#life.clock.resume()
  }

  stall(durationMs: number): void {
    this.#life.clock.stall(durationMs)
  }

  kill(): void {
    const { clock, store, broadcast } = this.#life
    if (clock.status === 'killed') return
    clock.kill()
    store.abandon()
    broadcast.abandon()
    this.#started.reject(new Error(`${this.name} was killed before it had started`))
  }

  async stop(): Promise<void> {
    await this.#world.clock.run(this.end())
  }

  /** As SIGTERM does; time is the caller's to run. */
  async end(): Promise<void> {
    await this.#started.promise.catch(() => {})
    const running = this.#running
    if (running === null || this.#hasEnded || this.#life.clock.status === 'killed') return
    await running.stop()
    if (running.done === null) this.#ended(this.#life, null)
  }

  async restart(): Promise<void> {
    this.respawn()
    await this.#world.clock.run(this.started)
  }

  respawn(): void {
    this.kill()
    this.#life = this.#open(this.#life.number + 1)
    this.#begin()
  }

  isolate(from: Neighbour = 'both', way: CutWay = 'both'): void {
    const cut = { requests: way !== 'in', replies: way !== 'out' }
    if (from !== 'nats') this.#life.store.cutOff(cut)
    if (from !== 'etcd') this.#life.broadcast.cutOff(cut)
  }

  heal(): void {
    const { clock, store, broadcast } = this.#life
    if (this.#hasEnded || clock.status === 'killed') return
    store.heal()
    store.reconnect()
    broadcast.heal()
    broadcast.reconnect()
  }

  /** No chance of anything going wrong any more, either. */
  calm(): void {
    const { store, broadcast } = this.#life
    Object.assign(store.faults, noStoreFaults())
    store.thawReads()
    Object.assign(broadcast.faults, noBroadcastFaults())
  }

  sleep(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#life.clock.schedule(durationMs, resolve)
    })
  }

  #open(number: number): Life {
    const { clock: world, etcd, nats, random, onEvent } = this.#world
    const label = `${this.name}/${number}`
    const clock = world.createProcess({
      onUncaught: (error) => {
        if (this.#life.clock === clock) this.#crashed(error)
      },
    })
    const record = (event: TelemetryEvent) => {
      this.events.push({ atMs: world.monotonicMs(), event })
      if (this.events.length >= 2 * EVENTS_KEPT) this.events.splice(0, EVENTS_KEPT)
      onEvent(this.name, event)
    }
    return {
      number,
      clock,
      store: etcd.connect(label, { clock }),
      broadcast: nats.connect(label, { clock }),
      random: random.fork(label),
      telemetry: { record },
    }
  }

  #begin(): void {
    const life = this.#life
    this.#running = null
    this.#hasEnded = false
    this.exitError = null
    this.#started = createDeferred<void>()
    try {
      const running = this.#start(life)
      if (running instanceof Promise) {
        running.then(
          (begun) => this.#isRunning(life, begun),
          (error: unknown) => this.#ended(life, error),
        )
      } else this.#isRunning(life, running)
    } catch (error: unknown) {
      this.#ended(life, error)
    }
  }

  #isRunning(life: Life, running: Running<Parts>): void {
    if (life !== this.#life) return
    this.#running = running
    this.#started.resolve()
    running.done?.then(
      () => this.#ended(life, null),
      (error: unknown) => this.#ended(life, error),
    )
  }

  /** Of its own will, or with the error that it told its caller. */
  #ended(life: Life, error: unknown): void {
    if (life !== this.#life || life.clock.status === 'killed') return
    this.#hasEnded = true
    if (error !== null) {
      this.exitError = asError(error)
      if (!isExpected(error)) this.failure ??= this.exitError
      this.#started.reject(error)
    }
    this.#goneSoon(life)
  }

  /** An error that nobody caught. */
  #crashed(error: unknown): void {
    this.failure ??= asError(error)
    this.exitError ??= asError(error)
    this.#started.reject(error)
    this.#running?.crash()
    this.#goneSoon(this.#life)
  }

  #goneSoon(life: Life): void {
    this.#world.clock.schedule(LAST_WORDS_MS, () => {
      if (life === this.#life) this.kill()
    })
  }

  #why(): string {
    return this.exitError === null ? '' : `: ${this.exitError.message}`
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** What a worker may well tell its caller; everything else is a bug. */
function isExpected(error: unknown): boolean {
  return isTenureError(error) && error.code !== 'invariant-broken'
}
