/** Looks at the election schedule when something changed or is due, on one timer. */
import type { ElectionSchedule } from '../core/election.ts'
import type { PartitionId } from '../core/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'

export class Campaigns {
  private readonly clock: Clock
  private readonly elections: ElectionSchedule
  private readonly mayCampaign: () => boolean
  private readonly campaign: (partition: PartitionId) => void
  private timer: Timer | null = null
  private atMs = Number.POSITIVE_INFINITY
  private closed = false

  constructor(options: {
    readonly clock: Clock
    readonly elections: ElectionSchedule
    /** Whether this member may campaign at all right now. */
    readonly mayCampaign: () => boolean
    readonly campaign: (partition: PartitionId) => void
  }) {
    this.clock = options.clock
    this.elections = options.elections
    this.mayCampaign = options.mayCampaign
    this.campaign = options.campaign
  }

  /** Looks once in `delayMs` at the latest; all that changes in one turn shares one look. */
  schedule(delayMs: number): void {
    if (this.closed) return
    const atMs = this.clock.monotonicMs() + delayMs
    if (this.timer !== null && this.atMs <= atMs) return
    this.timer?.cancel()
    this.atMs = atMs
    this.timer = this.clock.schedule(delayMs, () => this.look())
  }

  close(): void {
    this.closed = true
    this.timer?.cancel()
  }

  private look(): void {
    this.timer = null
    if (!this.mayCampaign()) return
    const nowMs = this.clock.monotonicMs()
    this.elections.lookedLate(nowMs - this.atMs, nowMs)
    const round = this.elections.round(nowMs)
    for (const partition of round.campaigns) this.campaign(partition)
    if (round.wakeAtMs !== null) this.schedule(round.wakeAtMs - nowMs)
  }
}
