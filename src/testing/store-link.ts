/**
 * The connection between one client and the in-memory etcd.
 *
 *   connected -> disconnected   calls under way and watches break, new calls are refused at once
 *   connected -> cut            silence in one direction or both: nobody is told; what was under way
 *                               breaks when the connection's own probes have gone unanswered for 8 s
 *
 * What arrives for a process that is paused waits until it runs again, since everything is delivered by
 * a timer of that process's own clock.
 */
import type { Clock, Timer } from '../ports/clock.ts'

/** Probe interval and probe timeout of the real client's transport, together. */
export const KEEPALIVE_LIMIT_MS = 8_000

export type Cut = { readonly requests: boolean; readonly replies: boolean }

const WHOLE: Cut = { requests: false, replies: false }

export class StoreLink {
  readonly clock: Clock
  #connected = true
  #cut: Cut = WHOLE
  #cutTimer: Timer | null = null
  readonly #onBreak = new Set<(detail: string) => void>()
  readonly #onHeal = new Set<() => void>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  get connected(): boolean {
    return this.#connected
  }

  get cut(): Cut {
    return this.#cut
  }

  disconnect(): void {
    this.#connected = false
    this.break('connection reset')
  }

  reconnect(): void {
    this.#connected = true
  }

  /** Ends what is under way; the link itself can be used again at once. */
  break(detail: string): void {
    for (const listener of [...this.#onBreak]) listener(detail)
  }

  cutOff(cut: Cut): void {
    this.#cut = cut
    this.#cutTimer?.cancel()
    this.#cutTimer = this.clock.schedule(KEEPALIVE_LIMIT_MS, () =>
      this.break('keepalive probes unanswered'),
    )
  }

  heal(): void {
    this.#cut = WHOLE
    this.#cutTimer?.cancel()
    for (const listener of [...this.#onHeal]) listener()
  }

  /** The process is gone: nobody is told of anything any more. */
  abandon(): void {
    this.#connected = false
    this.#cutTimer?.cancel()
    this.#onBreak.clear()
    this.#onHeal.clear()
  }

  /** Registers for the end of what is under way; returns how to stop listening. */
  onBreak(listener: (detail: string) => void): () => void {
    this.#onBreak.add(listener)
    return () => this.#onBreak.delete(listener)
  }

  onHeal(listener: () => void): () => void {
    this.#onHeal.add(listener)
    return () => this.#onHeal.delete(listener)
  }
}
