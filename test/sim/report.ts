/** What a run of many seeds tells people: figures, faults, coverage, and each failure in full. */
import { type Breach, describeBreach } from './breach.ts'
import { FAULT_KIND_NAMES, PARTITION_PHASES } from './fault-kinds.ts'
import { CELL_MIN, countOf, hoursOf, type Totals, thinCells } from './figures.ts'

export type Failure = {
  readonly seed: string
  readonly breach: Breach
  /** The command that runs it again. */
  readonly replay: string
}

const FAULTS_PER_LINE = 6
const THIN_SHOWN = 8

export function describeTotals(totals: Totals, tookMs: number): readonly string[] {
  const hours = hoursOf(totals.simulatedMs)
  const perHour = hoursOf(tookMs) > 0 ? hours / hoursOf(tookMs) : 0
  const cpuSeconds = Math.max(0.001, totals.cpuMs / 1000)
  const thin = thinCells(totals)
  const cells = FAULT_KIND_NAMES.length * PARTITION_PHASES.length
  return [
    `seeds            ${totals.seeds}, ${totals.repeated} of them run twice with equal traces`,
    `simulated        ${hours.toFixed(1)} h, ${hoursOf(totals.countedMs).toFixed(1)} h of them count (≥ 20 faults and ≥ 60 changes of ownership an hour)`,
    `speed            ${perHour.toFixed(0)} simulated hours per hour, ${Math.round(totals.events / cpuSeconds)} events per CPU second`,
    `faults           ${countOf(totals.faults)} (${(countOf(totals.faults) / Math.max(0.001, hours)).toFixed(0)} an hour)`,
    ...faultLines(totals),
    `ownership        ${totals.ownershipChanges} changes, ${totals.grants} grants`,
    `work             ${totals.admissions} admissions, ${totals.acceptedEffects} effects accepted, ${totals.refusedEffects} refused by the fence`,
    `maps, liveness   ${totals.mapComparisons} maps compared entry by entry, ${totals.livenessLooks} looks at ownerless or draining partitions, at most ${totals.recoveryWritesMax} writes of a record in a recovery`,
    `coverage         ${cells - thin.length} of ${cells} cells (fault × phase) at least ${CELL_MIN} times`,
    ...(thin.length === 0
      ? []
      : [
          `  thin           ${thin
            .slice(0, THIN_SHOWN)
            .map(({ kind, phase, count }) => `${kind} × ${phase} ${count}`)
            .join(', ')}${thin.length > THIN_SHOWN ? `, ${thin.length - THIN_SHOWN} more` : ''}`,
        ]),
  ]
}

export function describeFailure({ seed, breach, replay }: Failure): readonly string[] {
  return [`FAILED seed ${seed}: ${describeBreach(breach)}`, `  again: ${replay}`]
}

/** The whole table, for `--coverage`. */
export function coverageTable({ coverage }: Totals): readonly string[] {
  const head = ['fault'.padEnd(24), ...PARTITION_PHASES.map((phase) => phase.padStart(10))].join('')
  const rows = FAULT_KIND_NAMES.map((kind) =>
    [
      kind.padEnd(24),
      ...PARTITION_PHASES.map((phase) => String(coverage[kind]?.[phase] ?? 0).padStart(10)),
    ].join(''),
  )
  return [head, ...rows]
}

function faultLines({ faults }: Totals): readonly string[] {
  const words = FAULT_KIND_NAMES.map((kind) => `${kind} ${faults[kind] ?? 0}`)
  const lines: string[] = []
  for (let start = 0; start < words.length; start += FAULTS_PER_LINE) {
    lines.push(`  ${words.slice(start, start + FAULTS_PER_LINE).join(', ')}`)
  }
  return lines
}
