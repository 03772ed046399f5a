/**
 * Tables for people: no borders, columns two blanks apart, so that `awk` and the eye both read them.
 */
import type { Output } from './output.ts'

export type Table = (heads: readonly string[], rows: readonly (readonly string[])[]) => string

const EDGES = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
] as const
const LINES = ['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'] as const

/** Loads the table library, which `--help` and `--json` never need. */
export async function loadTable(output: Output): Promise<Table> {
  const { default: CliTable } = await import('cli-table3')
  const chars = Object.fromEntries([...EDGES, ...LINES].map((name) => [name, '']))
  return (heads, rows) => {
    const table = new CliTable({
      head: heads.map((head) => output.colors.dim(head)),
      chars: { ...chars, middle: '  ' },
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    })
    table.push(...rows.map((row) => [...row]))
    return table
      .toString()
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
  }
}
