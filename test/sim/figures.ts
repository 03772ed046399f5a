/** The figures of many runs, summed. Plain data: it travels between processes and into files. */
import {
  FAULT_KIND_NAMES,
  type FaultKind,
  PARTITION_PHASES,
  type PartitionPhase,
} from './fault-kinds.ts'
import { IMPOSSIBLE_CELLS } from './impossible-cells.ts'
import type { RunFigures } from './run-plan.ts'

const HOUR_MS = 3_600_000
/** A simulated hour counts only with as many faults and changes of ownership. */
const FAULTS_PER_HOUR_MIN = 20
const CHANGES_PER_HOUR_MIN = 60
/** Each cell of the coverage table is to be hit as often over a run. */
export const CELL_MIN = 20

export type Totals = {
  seeds: number
  /** Seeds run twice, to compare their traces. */
  repeated: number
  simulatedMs: number
  countedMs: number
  events: number
  cpuMs: number
  ownershipChanges: number
  grants: number
  admissions: number
  acceptedEffects: number
  refusedEffects: number
  mapComparisons: number
  livenessLooks: number
  recoveryWritesMax: number
  faults: Partial<Record<FaultKind, number>>
  coverage: Partial<Record<FaultKind, Partial<Record<PartitionPhase, number>>>>
}

const COUNTERS = [
  ...(['simulatedMs', 'events', 'ownershipChanges', 'grants', 'admissions'] as const),
  ...(['acceptedEffects', 'refusedEffects', 'mapComparisons', 'livenessLooks'] as const),
]

export function noTotals(): Totals {
  return {
    ...{ seeds: 0, repeated: 0, simulatedMs: 0, countedMs: 0, events: 0, cpuMs: 0 },
    ...{ ownershipChanges: 0, grants: 0, admissions: 0, acceptedEffects: 0, refusedEffects: 0 },
    ...{ mapComparisons: 0, livenessLooks: 0, recoveryWritesMax: 0, faults: {}, coverage: {} },
  }
}

export function addRun(totals: Totals, figures: RunFigures, cpuMs: number): void {
  totals.seeds += 1
  totals.cpuMs += cpuMs
  for (const counter of COUNTERS) totals[counter] += figures[counter]
  totals.recoveryWritesMax = Math.max(totals.recoveryWritesMax, figures.recoveryWritesMax)
  const hours = figures.simulatedMs / HOUR_MS
  const faults = countOf(figures.faults)
  const counts =
    faults >= FAULTS_PER_HOUR_MIN * hours &&
    figures.ownershipChanges >= CHANGES_PER_HOUR_MIN * hours
  if (counts) totals.countedMs += figures.simulatedMs
  for (const [kind, count] of Object.entries(figures.faults) as [FaultKind, number][]) {
    totals.faults[kind] = (totals.faults[kind] ?? 0) + count
  }
  for (const kind of Object.keys(figures.coverage) as FaultKind[]) {
    const cells = totals.coverage[kind] ?? {}
    totals.coverage[kind] = cells
    for (const phase of PARTITION_PHASES) {
      const count = figures.coverage[kind]?.[phase] ?? 0
      if (count > 0) cells[phase] = (cells[phase] ?? 0) + count
    }
  }
}

export function countOf(faults: Partial<Record<FaultKind, number>>): number {
  return Object.values(faults).reduce((sum, count) => sum + count, 0)
}

export function hoursOf(ms: number): number {
  return ms / HOUR_MS
}

export type Cell = {
  readonly kind: FaultKind
  readonly phase: PartitionPhase
  readonly count: number
}

/** Cells hit less than {@link CELL_MIN} times, of those that can be hit. */
export function thinCells({ coverage }: Totals): readonly Cell[] {
  return FAULT_KIND_NAMES.flatMap((kind) =>
    PARTITION_PHASES.flatMap((phase) => {
      const count = coverage[kind]?.[phase] ?? 0
      const isThin = count < CELL_MIN && IMPOSSIBLE_CELLS[kind]?.[phase] === undefined
      return isThin ? [{ kind, phase, count }] : []
    }),
  )
}
