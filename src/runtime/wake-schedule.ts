/**
 * Wake times of many partitions on one timer: times are rounded up to buckets, a bucket's partitions
 * are woken together, and a wake that is no longer needed is harmless to a state machine.
 */
import type { PartitionId } from '../core/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'

const BUCKET_MS = 50

export class WakeSchedule {
  private readonly buckets = new Map<number, Set<PartitionId>>()
  private readonly clock: Clock
  private readonly wake: (partition: PartitionId) => void
  private timer: Timer | null = null
  private timerAtMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock, wake: (partition: PartitionId) => void) {
    this.clock = clock
    this.wake = wake
  }

  add(partition: PartitionId, atMs: number): void {
    const bucketMs = Math.ceil(atMs / BUCKET_MS) * BUCKET_MS
    const bucket = this.buckets.get(bucketMs)
    if (bucket !== undefined) bucket.add(partition)
    else {
      this.buckets.set(bucketMs, new Set([partition]))
      if (bucketMs < this.timerAtMs) this.arm(bucketMs)
    }
  }

  close(): void {
    this.timer?.cancel()
    this.timer = null
    this.buckets.clear()
  }

  private arm(atMs: number): void {
    this.timer?.cancel()
    this.timerAtMs = atMs
    const delayMs = Math.max(0, atMs - this.clock.monotonicMs())
    this.timer = this.clock.schedule(delayMs, () => this.fire())
  }

  private fire(): void {
    this.timer = null
    this.timerAtMs = Number.POSITIVE_INFINITY
    const nowMs = this.clock.monotonicMs()
    const due = [...this.buckets.keys()].filter((atMs) => atMs <= nowMs).sort((a, b) => a - b)
    for (const atMs of due) {
      const partitions = this.buckets.get(atMs) ?? []
      this.buckets.delete(atMs)
      for (const partition of partitions) this.wake(partition)
    }
    const next = Math.min(...this.buckets.keys())
    if (Number.isFinite(next)) this.arm(next)
  }
}
