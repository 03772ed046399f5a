/**
 * What follows when the store's revision went back (sign 3): a restored etcd is told of as long as its
 * incarnation is an old one, a wiped one gets its group anew, with no operator.
 *
 *   steady ──rewound──▶ looking ──the fresh list has settings──▶ restored ──incarnation rose──▶ steady
 *                          │                                         (the alarm stands meanwhile)
 *                          └──it has none──▶ wiped: create the group anew ──settings stand──▶ steady
 *
 * Every process that follows the group does this by itself; creation compares, so one of them wins. The
 * new group has the settings that were known last, and an incarnation above all that was known. A group
 * whose settings were deleted from a store that did not go back is left alone: somebody meant that.
 */
import type { GroupConfig } from '../core/group-config.ts'
import type { GroupName } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import { isTenureError } from '../core/tenure-error.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { ensureGroup } from './group-setup.ts'
import type { Mirror } from './mirror.ts'

export type RewindWatchOptions = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly store: Store
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly mirror: Mirror
}

const LOOK_MS = 100
const CREATE_DEADLINE_MS = 5000

export class RewindWatch {
  private readonly options: RewindWatchOptions
  private readonly unsubscribe: () => void
  private timer: Timer | null = null
  private config: GroupConfig | null
  /** The highest incarnation ever known here. */
  private highest = 0
  /** After the store went back: what its incarnation must exceed. */
  private rewoundThrough = 0
  private listedBeforeMs: number | null = null
  private closed = false

  constructor(options: RewindWatchOptions) {
    this.options = options
    this.config = options.mirror.state.config
    this.note()
    this.unsubscribe = options.mirror.subscribe({
      changed: ({ settings }) => {
        if (settings) this.note()
      },
      rewound: () => this.rewound(),
    })
  }

  /** The alarm that stands, or none: `<code>: <detail>`. */
  alarms(): readonly string[] {
    const { config, incarnation } = this.options.mirror.state
    if (this.isLooking || config === null) return []
    if (this.rewoundThrough === 0 || (incarnation ?? 0) > this.rewoundThrough) return []
    return [`store-rewound: ${this.detail()}`]
  }

  /** What a raised incarnation must exceed, as far as this process knows. */
  highestKnown(): number {
    return this.highest
  }

  close(): void {
    this.closed = true
    this.unsubscribe()
    this.timer?.cancel()
  }

  private get isLooking(): boolean {
    return this.listedBeforeMs !== null
  }

  private note(): void {
    const { config, incarnation } = this.options.mirror.state
    if (config !== null) this.config = config
    this.highest = Math.max(this.highest, incarnation ?? 0)
  }

  /** The mirror still shows what was before; a fresh list follows. */
  private rewound(): void {
    this.note()
    this.rewoundThrough = this.highest
    this.listedBeforeMs = this.options.mirror.currentAtMs ?? Number.NEGATIVE_INFINITY
    this.lookLater()
  }

  private lookLater(): void {
    this.timer?.cancel()
    this.timer = this.options.clock.schedule(LOOK_MS, () => this.look())
  }

  private look(): void {
    const { mirror, telemetry, group } = this.options
    if (this.closed || this.listedBeforeMs === null) return
    if ((mirror.currentAtMs ?? Number.NEGATIVE_INFINITY) <= this.listedBeforeMs) {
      this.lookLater()
      return
    }
    if (mirror.state.config === null) {
      void this.createAnew()
      return
    }
    this.listedBeforeMs = null
    if (this.alarms().length > 0) {
      telemetry.record({ type: 'alarm', group, code: 'store-rewound', detail: this.detail() })
    }
  }

  private async createAnew(): Promise<void> {
    const { group, keys, store, clock, telemetry } = this.options
    const settings = this.config ?? {}
    const incarnationAbove = this.highest
    const deadlineMs = CREATE_DEADLINE_MS
    try {
      await ensureGroup({ store, keys, clock, group, settings, incarnationAbove, deadlineMs })
    } catch (error) {
      if (!isTenureError(error)) throw error
      // Somebody made it of another kind: that stands, and is told by who joins it.
      if (error.code !== 'config-mismatch') {
        telemetry.record({ type: 'mirror-broken', group, detail: error.message })
      }
    }
    if (!this.closed) this.lookLater()
  }

  private detail(): string {
    return `etcd went back in time: raise the incarnation above ${this.rewoundThrough} with "tenure incarnation raise"`
  }
}
