/** A run in at most 30 lines for a terminal, and whole as JSON. */
import {
  type Distribution,
  distributionOf,
  type HistogramBucket,
  histogramOf,
} from '../../src/evidence/distribution.ts'
import type { FaultLine } from './faults.ts'
import type { Counts, Failure, Judgement } from './judgement.ts'
import { BOUNDS_MS, type LivenessName, type Measure } from './liveness.ts'
import type { OperatorCounts } from './operators.ts'
import type { ChaosOptions } from './options.ts'

export type Versions = Readonly<Record<string, string>>

type Durations = Distribution & { readonly count: number }
type LivenessReport = {
  /** The design's bound. */
  readonly boundMs: number
  readonly clean: Durations
  /** Of those that later faults bore on, each with a later bound of its own. */
  readonly disturbed: Durations
  readonly broken: number
  readonly voided: number
}

export type ChaosReport = {
  readonly verdict: Judgement['verdict']
  readonly seed: number
  readonly minutes: number
  readonly commit: string
  readonly versions: Versions
  readonly counts: Counts
  readonly promises: Judgement['verification']['promises']
  readonly faultsByKind: Readonly<Record<string, number>>
  readonly operators: OperatorCounts
  readonly liveness: Readonly<Record<LivenessName, LivenessReport>>
  readonly ownerlessMs: Durations & { readonly histogram: readonly HistogramBucket[] }
  readonly overlapMs: Durations & { readonly histogram: readonly HistogramBucket[] }
  readonly wallClockDriftMs: number
  readonly failures: readonly (Failure & { readonly near: readonly string[] })[]
  readonly faults: readonly FaultLine[]
}

const NAMES = ['L1', 'L2', 'L3', 'L4'] as const
const NEAR_BEFORE_MS = 12_000
const NEAR_AFTER_MS = 2000
const FAILURES_TOLD = 3
const NEAR_TOLD = 3

export function makeReport(of: {
  readonly options: ChaosOptions
  readonly judgement: Judgement
  readonly faults: readonly FaultLine[]
  readonly fromMs: number
  readonly operators: OperatorCounts
  readonly commit: string
  readonly versions: Versions
  readonly wallClockDriftMs: number
}): ChaosReport {
  const { judgement, faults, fromMs, options } = of
  const { verification, measures, failures, verdict, counts } = judgement
  const byKind: Record<string, number> = {}
  for (const { kind } of faults) byKind[kind] = (byKind[kind] ?? 0) + 1
  return {
    ...{ verdict, seed: options.seed, minutes: options.minutes, commit: of.commit },
    ...{ versions: of.versions, counts, promises: verification.promises },
    ...{ faultsByKind: byKind, operators: of.operators },
    liveness: Object.fromEntries(
      NAMES.map((name) => [name, livenessOf(name, measures)]),
    ) as ChaosReport['liveness'],
    ownerlessMs: withHistogram(verification.ownerlessMs ?? []),
    overlapMs: withHistogram(verification.overlapMs),
    wallClockDriftMs: of.wallClockDriftMs,
    failures: failures.map((failure) => ({
      ...failure,
      near: faultsNear(faults, failure, fromMs),
    })),
    faults,
  }
}

function livenessOf(name: LivenessName, measures: readonly Measure[]): LivenessReport {
  const ofName = measures.filter(({ promise }) => promise === name)
  const times = (isClean: boolean) =>
    durations(
      ofName.flatMap((one) => (one.isClean === isClean && one.tookMs !== null ? [one.tookMs] : [])),
    )
  return {
    boundMs: BOUNDS_MS[name],
    clean: times(true),
    disturbed: times(false),
    broken: ofName.filter(({ verdict }) => verdict === 'broken').length,
    voided: ofName.filter(({ verdict }) => verdict === 'void').length,
  }
}

function durations(values: readonly number[]): Durations {
  return { count: values.length, ...distributionOf(values) }
}

function withHistogram(values: readonly number[]) {
  return { ...durations(values), histogram: histogramOf(values) }
}

/** Times in seconds since the first fault. */
function faultsNear(
  faults: readonly FaultLine[],
  { atMs }: Failure,
  runFromMs: number,
): readonly string[] {
  if (atMs === null) return []
  const seconds = (ms: number) => `${((ms - runFromMs) / 1000).toFixed(1)} s`
  return faults
    .filter(
      ({ fromMs, toMs }) =>
        fromMs <= atMs + NEAR_AFTER_MS && (toMs ?? Infinity) >= atMs - NEAR_BEFORE_MS,
    )
    .map(({ kind, targets, fromMs, toMs }) => {
      const until = toMs === null ? 'never healed' : `to ${seconds(toMs)}`
      return `${kind} ${targets.join(', ')} from ${seconds(fromMs)} ${until}`
    })
}

/** At most 30 lines. */
export function reportLines(report: ChaosReport): readonly string[] {
  const { counts, verdict, liveness, failures } = report
  const told = failures.slice(0, FAILURES_TOLD)
  const kinds = Object.entries(report.faultsByKind).sort(([, a], [, b]) => b - a)
  return [
    `chaos ${verdict}: seed ${report.seed}, ${report.minutes} min, commit ${report.commit}`,
    `  orders: ${counts.published} acknowledged, ${counts.applied} applied, ${counts.lost} lost, ${counts.duplicated} doubled; ${counts.lostByStream} lost by the stream itself`,
    `  fence: ${counts.staleRefused} stale writes refused, ${counts.staleAccepted} accepted`,
    `  ${Object.entries(report.promises)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')}`,
    `  grants: ${counts.grants}, ${counts.handOvers} handed over after a drain, ${counts.forced} forced; overlap after drains ${counts.drainedOverlapMs} ms`,
    `  faults: ${counts.faults} (${counts.faultsPerMinute} a minute, ${Math.round(counts.overlapping * 100)} % overlapping), ${counts.leaderChanges} changes of etcd's leader`,
    `  kinds: ${kinds
      .slice(0, 8)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', ')}, ${Math.max(0, kinds.length - 8)} more kinds`,
    ...NAMES.map((name) => livenessLine(name, liveness[name])),
    durationsLine('ownerless', report.ownerlessMs),
    durationsLine('overlap of effects under successive tokens', report.overlapMs),
    `  machine: ${counts.voided} durations void since it stalled meanwhile, ${(counts.voidedShare * 100).toFixed(1)} % of the time`,
    ...told.flatMap(({ text, near }) => [
      `FAILED ${text}`.slice(0, 300),
      ...near.slice(-NEAR_TOLD).map((line) => `    near: ${line}`),
    ]),
    ...(failures.length > told.length ? [`FAILED ${failures.length - told.length} more`] : []),
  ]
}

function livenessLine(name: LivenessName, of: LivenessReport): string {
  const { clean, disturbed, boundMs, broken } = of
  const late = disturbed.count === 0 ? '' : `; under further faults ${describe(disturbed)}`
  return `  ${name} (bound ${boundMs} ms): ${describe(clean)}${late}; ${broken} broken`
}

function durationsLine(what: string, value: Durations): string {
  return `  ${what}: ${describe(value)}`
}

function describe({ count, p50, p99, max }: Durations): string {
  const ms = (value: number) => Math.round(value)
  return count === 0 ? 'none' : `${count} times, p50 ${ms(p50)}, p99 ${ms(p99)}, max ${ms(max)} ms`
}
