/**
 * The disk of the in-memory etcd: each write waits until it is there, behind the writes before it. One
 * that has not reached it when the leader goes may still be executed by the next, or be lost; one is
 * certainly lost when the server restarts.
 */
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { type DelayRange, drawDelayMs } from './faults.ts'

export type DiskOwner = {
  /** Rises whenever the server restarts. */
  era(): number
  isUp(): boolean
  /** The write has reached the disk while nobody led. */
  leaderGone(run: () => void): void
}

export class EtcdDisk {
  /** How long each write takes; null: no time. */
  delay: DelayRange | null = null
  readonly #clock: Clock
  readonly #random: Random
  readonly #owner: DiskOwner
  /** When the last write on its way is there. */
  #freeAtMs = 0

  constructor(clock: Clock, random: Random, owner: DiskOwner) {
    this.#clock = clock
    this.#random = random
    this.#owner = owner
  }

  write(run: () => void): void {
    const nowMs = this.#clock.monotonicMs()
    if (this.delay === null && this.#freeAtMs <= nowMs) {
      run()
      return
    }
    const delayMs = this.delay === null ? 0 : drawDelayMs(this.#random, this.delay)
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs + delayMs)
    const era = this.#owner.era()
    this.#clock.schedule(this.#freeAtMs - nowMs, () => {
      if (era !== this.#owner.era()) return
      if (this.#owner.isUp()) run()
      else this.#owner.leaderGone(run)
    })
  }
}
