/** Cells of the coverage table (fault × phase of the partition) that cannot be hit, and why. */
import type { FaultKind, PartitionPhase } from './fault-kinds.ts'

export const IMPOSSIBLE_CELLS: Partial<Record<FaultKind, Partial<Record<PartitionPhase, string>>>> =
  {}
