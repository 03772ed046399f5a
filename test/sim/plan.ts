/**
 * A plan is one simulated world as data: how large it is, and what happens to it when. A plan is drawn
 * from a seed (`draw-plan.ts`), run (`run-plan.ts`), and made smaller when it breaks a promise
 * (`shrink.ts`). The same plan run twice takes the same steps.
 */
import type { DrainPolicy } from '../../src/core/group-config.ts'
import type { FaultKind, PartitionPhase } from './fault-kinds.ts'

/** Rises when the same seed draws another plan than before: kept seeds of an older one name another world. */
export const GENERATOR = 8

export type WorldShape = {
  readonly workers: number
  readonly serves: number
  readonly observers: number
  readonly partitions: number
  readonly resources: number
  readonly fenced: boolean
  readonly drainPolicy: DrainPolicy
  readonly drainDeadlineMs: number
  readonly leaseTtlMs: number
  readonly restartGraceMs: number
  /** Between two pieces of work of one partition. */
  readonly workPauseMs: number
}

export type PlannedFault = {
  readonly atMs: number
  readonly kind: FaultKind
  /** Chooses who is hit, modulo how many there are; with an aim, the partition's owner is hit instead. */
  readonly target: number
  /** A second choice: another member, a partition. */
  readonly other: number
  readonly forMs: number
  /** Waits a while for a partition in this phase, and hits then and there. */
  readonly aim: PartitionPhase | null
}

/**
 * How long faults go on: `short`, for a taste, a minute; `usual` 2 to 5 minutes, with a fault each 3 to 12 s
 * and busy partitions; `long` an hour, with longer quiet between the faults and less work, for what only time
 * brings about (history that piles up, compaction, renewals by the thousand).
 */
export type WorldLength = 'short' | 'usual' | 'long'

/** What is looked at once all has healed, with nothing else going on. */
export type Probe = 'none' | 'kill' | 'leave' | 'join' | 'move' | 'restart' | 'no-quorum'

export type Plan = {
  readonly seed: string
  readonly generator: number
  readonly shape: WorldShape
  /** How long faults go on; then everything heals. */
  readonly faultsMs: number
  readonly faults: readonly PlannedFault[]
  readonly probe: Probe
}
