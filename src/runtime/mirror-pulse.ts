/**
 * Asks the store now and then whether it answers at all: one commit without a revision. It tells two
 * things: that the store is reachable (or no longer), and, with a watch open, that the map is current.
 */
import type { GroupKeys } from '../core/keys.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'

export type MirrorPulseOptions = {
  readonly store: Store
  readonly keys: GroupKeys
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Between two; also how long each may take. */
  readonly pulseMs: number
  readonly answered: () => void
}

export class MirrorPulse {
  private readonly options: MirrorPulseOptions
  private timer: Timer
  private reachable = true
  private closed = false

  constructor(options: MirrorPulseOptions) {
    this.options = options
    this.timer = this.next()
  }

  close(): void {
    this.closed = true
    this.timer.cancel()
  }

  private next(): Timer {
    const { clock, pulseMs } = this.options
    return clock.schedule(pulseMs, () => void this.ask())
  }

  private async ask(): Promise<void> {
    const { store, keys, telemetry, pulseMs, answered } = this.options
    const success = [{ type: 'delete', key: keys.never }] as const
    const transaction = { compare: [], success, failure: [] }
    const reply = await store.transact(transaction, { timeoutMs: pulseMs })
    if (this.closed) return
    if (reply.ok) answered()
    if (reply.ok !== this.reachable) {
      this.reachable = reply.ok
      const detail = reply.ok ? '' : reply.detail
      telemetry.record({ type: 'store-reachable', reachable: reply.ok, detail })
    }
    this.timer = this.next()
  }
}
