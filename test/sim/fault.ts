/** A fault under way. */
import type { PlannedFault } from './plan.ts'

export type Strike = {
  readonly fault: PlannedFault
  /** Its place in the plan; unique. */
  readonly id: number
  /** The partition that it was aimed at; null: none. */
  readonly partition: number | null
}

/** What it hit: a member's partitions, one partition, or all; `end` null: it was a moment. */
export type Hit = {
  readonly member?: string
  readonly partition?: number
  /** For the timeline. */
  readonly on: string
  readonly end: (() => void) | null
}
