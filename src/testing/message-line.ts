/**
 * One direction of a connection: what is sent over it arrives each after its own delay, in order. Cut, it
 * keeps what should arrive, as TCP does, until it is whole again or the connection ends.
 */
import type { Clock } from '../ports/clock.ts'

export class MessageLine {
  isCut = false
  /** Of who receives: one that is paused receives nothing. */
  readonly #clock: Clock
  #lastArrivalMs = 0
  /** Rises with each connection; what was sent over an earlier one is lost. */
  #era = 0
  #held: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  send(delayMs: number, arrive: () => void): void {
    const era = this.#era
    const nowMs = this.#clock.monotonicMs()
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, nowMs + delayMs)
    this.#clock.schedule(this.#lastArrivalMs - nowMs, () => {
      if (era !== this.#era) return
      if (this.isCut || this.#held.length > 0) this.#held.push(arrive)
      else arrive()
    })
  }

  cut(isCut: boolean): void {
    this.isCut = isCut
    if (isCut || this.#held.length === 0) return
    const era = this.#era
    this.#clock.schedule(0, () => {
      if (era !== this.#era) return
      const held = this.#held
      this.#held = []
      for (const arrive of held) if (era === this.#era) arrive()
    })
  }

  /** The connection ended: all that was on its way is lost. */
  drop(): void {
    this.#era += 1
    this.#held = []
  }
}
