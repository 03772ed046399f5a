/**
 * Rows from what was measured. A ratio is taken round by round, between neighbours in time, and the
 * median of the rounds counts: a machine that slows down half way slows both down. Every other figure
 * of every contender becomes a row without target, so that nothing measured is left out.
 */
import type {
  BenchCase,
  Comparison,
  Figure,
  Figures,
  ResultRow,
  ScenarioName,
  Target,
} from './bench-types.ts'
import { median, spreadOf, statisticOf } from './spread.ts'

/** Figures by contender, one entry per round. */
export type Measured = ReadonlyMap<string, readonly Figures[]>

export const TENURE = 'Tenure'
export const LIMIT = 'limit'
/** The limit once more, its watches read as sparingly as Tenure reads them (`raw-watch.ts`). */
export const LEAN_LIMIT = 'lean limit'

export function rowsOf(
  scenario: ScenarioName,
  benchCase: BenchCase,
  comparisons: readonly Comparison[],
  measured: Measured,
): readonly ResultRow[] {
  const rows: ResultRow[] = []
  const told = new Set<string>()
  for (const comparison of comparisons) {
    const row = compared(scenario, benchCase.name, comparison, measured)
    if (row === null) continue
    rows.push(row)
    told.add(`${TENURE} ${comparison.metric} ${comparison.statistic}`)
  }
  for (const [contender, rounds] of measured) {
    for (const { metric, values } of rounds[0] ?? []) {
      const statistic = values.length > 1 ? 'p50' : 'median'
      if (told.has(`${contender} ${metric} ${statistic}`)) continue
      const about = { scenario, case: benchCase.name, contender, metric, statistic } as const
      rows.push({ ...about, ...plain(rounds, metric, statistic), ...NO_RATIO })
    }
  }
  return rows
}

const NO_RATIO = { against: null, ratio: null, target: null, met: null, bound: null } as const

function compared(
  scenario: ScenarioName,
  caseName: string,
  comparison: Comparison,
  measured: Measured,
): ResultRow | null {
  const { metric, statistic, against, target } = comparison
  const rounds = measured.get(TENURE)
  if (rounds === undefined || figureOf(rounds[0], metric) === null) return null
  const about = { scenario, case: caseName, contender: TENURE, metric, statistic } as const
  const own = plain(rounds, metric, statistic)
  if (against === null) {
    const met = target === null ? null : isMet(target, own.value)
    return { ...about, ...own, against, ratio: null, target, met, bound: null }
  }
  const others = measured.get(against)
  const otherMetric = comparison.againstMetric ?? metric
  if (others === undefined || figureOf(others[0], otherMetric) === null) return null
  const ratio = median(ratios(rounds, others, comparison))
  const other = plain(others, otherMetric, statistic)
  const isVoid = other.value < (comparison.voidBelow ?? 0)
  const met = target === null || isVoid ? null : isMet(target, ratio)
  const why = isVoid ? `void: ${against} reached only ${Math.round(other.value)} ${other.unit}` : ''
  const note = [own.note, why].filter(Boolean).join('; ')
  const bound = boundOf(comparison, measured, others)
  return { ...about, ...own, note, against, ratio, target, met, bound }
}

function boundOf(
  comparison: Comparison,
  measured: Measured,
  others: readonly Figures[],
): ResultRow['bound'] {
  const { bound } = comparison
  const rounds = bound === undefined ? undefined : measured.get(bound.contender)
  if (bound === undefined || rounds === undefined) return null
  return { ratio: median(ratios(rounds, others, comparison)), why: bound.why }
}

/** Whether not even the contender that shows the least possible meets the target. */
export function isOutOfReach({ target, bound }: ResultRow): boolean {
  return target !== null && bound !== null && !isMet(target, bound.ratio)
}

function ratios(own: readonly Figures[], others: readonly Figures[], comparison: Comparison) {
  const { metric, againstMetric = metric, statistic } = comparison
  const found: number[] = []
  for (const [round, figures] of own.entries()) {
    const mine = figureOf(figures, metric)
    const theirs = figureOf(others[round], againstMetric)
    if (mine === null || theirs === null) continue
    const divisor = statisticOf(theirs.values, statistic)
    if (divisor !== 0) found.push(statisticOf(mine.values, statistic) / divisor)
  }
  return found
}

function plain(rounds: readonly Figures[], metric: string, statistic: ResultRow['statistic']) {
  const figures = rounds.flatMap((round) => figureOf(round, metric) ?? [])
  const each = figures.map(({ values }) => statisticOf(values, statistic))
  const { samples, p50, p99, max } = spreadOf(figures.flatMap(({ values }) => values))
  const note = [...new Set(figures.flatMap(({ note }) => note ?? []))].join('; ')
  return {
    // The worst of all rounds is the worst.
    value: statistic === 'max' ? Math.max(...each) : median(each),
    unit: figures[0]?.unit ?? '',
    runs: figures.length,
    ...{ samples, p50, p99, max, note },
  }
}

function figureOf(figures: Figures | undefined, metric: string): Figure | null {
  const found = figures?.find((figure) => figure.metric === metric)
  return found === undefined || found.values.length === 0 ? null : found
}

function isMet(target: Target, value: number): boolean {
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}
