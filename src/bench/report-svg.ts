/**
 * One picture per scenario: a bar for each contender and case of the metrics that Tenure is held
 * against, on a scale of its own per metric and case. Plain SVG that follows light and dark.
 */
import type { BenchReport, ResultRow, ScenarioName } from './bench-types.ts'
import { TENURE } from './evaluate.ts'
import { figure } from './report-markdown.ts'
import { SCENARIOS } from './scenarios.ts'

const WIDTH = 720
const LABEL_WIDTH = 200
const VALUE_WIDTH = 120
const ROW = 22
const HEAD = 30

export function picturesOf({ results }: BenchReport): ReadonlyMap<ScenarioName, string> {
  const pictures = new Map<ScenarioName, string>()
  for (const { name, title } of SCENARIOS) {
    const rows = results.filter((row) => row.scenario === name)
    if (rows.length > 0) pictures.set(name, picture(`${name}: ${title}`, blocksOf(rows)))
  }
  return pictures
}

type Block = { readonly title: string; readonly bars: readonly ResultRow[] }

/** Metrics that more than one contender has, or that have a target. */
function blocksOf(rows: readonly ResultRow[]): readonly Block[] {
  const blocks = new Map<string, ResultRow[]>()
  for (const row of rows) {
    const title = `${row.case}: ${row.metric}${row.unit === '' ? '' : `, ${row.unit}`}`
    const bars = blocks.get(title) ?? []
    if (!bars.some(({ contender }) => contender === row.contender)) bars.push(row)
    blocks.set(title, bars)
  }
  return [...blocks]
    .filter(([, bars]) => bars.length > 1 || bars.some(({ target }) => target !== null))
    .map(([title, bars]) => ({ title, bars }))
}

function picture(title: string, blocks: readonly Block[]): string {
  const parts: string[] = []
  let y = HEAD
  for (const block of blocks) {
    parts.push(`<text class="head" x="0" y="${y + 14}">${escaped(block.title)}</text>`)
    y += ROW
    const most = Math.max(...block.bars.map(({ value }) => value))
    for (const bar of block.bars) {
      parts.push(barOf(bar, most, y))
      y += ROW
    }
    y += ROW / 2
  }
  const style = `text{font:13px system-ui,sans-serif;fill:#333}.head{font-weight:600}
.tenure{fill:#2a7de1}.other{fill:#9aa5b1}
@media(prefers-color-scheme:dark){text{fill:#ddd}.tenure{fill:#5aa2ff}.other{fill:#667}}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img">
<title>${escaped(title)}</title>
<style>${style}</style>
<text class="head" x="0" y="16">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`
}

function barOf({ contender, value }: ResultRow, most: number, y: number): string {
  const room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
  const width = most === 0 ? 0 : Math.max(1, (value / most) * room)
  const kind = contender === TENURE ? 'tenure' : 'other'
  return [
    `<text x="0" y="${y + 14}">${escaped(contender)}</text>`,
    `<rect class="${kind}" x="${LABEL_WIDTH}" y="${y + 2}" width="${width.toFixed(1)}" height="${ROW - 6}" rx="2"/>`,
    `<text x="${(LABEL_WIDTH + width + 6).toFixed(1)}" y="${y + 14}">${figure(value)}</text>`,
  ].join('')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
