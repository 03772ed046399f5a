/** The results as Markdown: how it was measured, a table per scenario, what the rivals do not promise. */
import type { BenchReport, ResultRow, Target } from './bench-types.ts'
import { isOutOfReach } from './evaluate.ts'
import { SCENARIOS } from './scenarios.ts'

export function markdownOf(report: BenchReport): string {
  const { machine, versions, seed, quick, startedAt, tookS, results } = report
  const list = (entries: Readonly<Record<string, string | number>>) =>
    Object.entries(entries)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')
  const lines = [
    `Machine: ${list(machine)}. Versions: ${list(versions)}.`,
    `Seed ${seed}, ${quick ? 'quick' : 'full'} run of ${tookS} s, ${startedAt}.`,
    'Ratios are the median over the rounds of one run, taken between neighbours in time; absolute',
    'figures hold for this machine in that hour only.',
  ]
  for (const { name, title } of SCENARIOS) {
    const rows = results.filter((row) => row.scenario === name)
    if (rows.length > 0) lines.push('', `### ${name}: ${title}`, '', ...table(rows))
  }
  return `${[...lines, ...rivalsOf(report)].join('\n')}\n`
}

function table(rows: readonly ResultRow[]): readonly string[] {
  return [
    '| case | who | metric | value | ratio | target | met | p50 / p99 / max | runs |',
    '| --- | --- | --- | ---: | --- | --- | --- | --- | ---: |',
    ...rows.map((row) => `| ${cells(row).join(' | ')} |`),
    ...notes(rows),
  ]
}

function cells(row: ResultRow): readonly string[] {
  const { statistic, samples, runs } = row
  const spread = samples > runs ? [row.p50, row.p99, row.max].map(figure).join(' / ') : ''
  const metric = statistic === 'median' ? row.metric : `${row.metric}, ${statistic}`
  return [
    row.case,
    row.contender,
    metric,
    `${figure(row.value)} ${row.unit}`.trim(),
    row.ratio === null ? '' : `${figure(row.ratio)} × ${row.against}`,
    row.target === null ? '' : targetText(row.target),
    verdictOf(row),
    spread,
    String(runs),
  ]
}

function verdictOf(row: ResultRow): string {
  if (row.met === null) return ''
  if (row.met) return 'yes'
  return isOutOfReach(row) ? `no; the least is ${figure(row.bound?.ratio ?? 0)} ×` : 'no'
}

function notes(rows: readonly ResultRow[]): readonly string[] {
  const noted = new Set(
    rows.flatMap(({ contender, metric, note, case: name, bound }) => [
      ...(note === '' ? [] : [`- ${contender}, ${metric}: ${note}.`]),
      ...(bound === null ? [] : [`- ${name}, ${metric}, the least: ${bound.why}.`]),
    ]),
  )
  return noted.size === 0 ? [] : ['', ...noted]
}

function rivalsOf({ rivals }: BenchReport): readonly string[] {
  if (rivals.length === 0) return []
  const lines = rivals.map(({ name, absent, doesNotPromise }) => {
    if (absent !== null) return `- ${name}: not measured, ${absent}.`
    return `- ${name} does not promise: ${doesNotPromise.join('; ')}.`
  })
  return ['', '### rivals', '', ...lines]
}

export function targetText(target: Target): string {
  return 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
}

/** Three significant figures. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const magnitude = Math.abs(value)
  if (magnitude >= 100) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}
