/**
 * What a command prints: data to stdout, as text for people or as JSON with `--json`; notes to stderr.
 * Colour only on a terminal, and neither with NO_COLOR nor `--no-color`.
 */
import type { Colors } from 'picocolors/types.js'
import type { CliContext } from './context.ts'

export type Output = {
  readonly json: boolean
  readonly colors: Colors
  /** Prints a command's answer: `value` as JSON, or what `render` makes of it. */
  answer(value: unknown, render: () => string): void
  /** One line of a stream: `value` on one line of JSON, or the text. */
  line(value: unknown, render: () => string): void
  /** Progress or a hint, for people. */
  note(text: string): void
}

export type OutputFlags = { readonly json?: boolean; readonly color?: boolean }

export async function createOutput(context: CliContext, flags: OutputFlags): Promise<Output> {
  const { default: picocolors } = await import('picocolors')
  const { stdout, stderr, variables } = context
  const noColour = flags.color === false || (variables['NO_COLOR'] ?? '') !== ''
  const json = flags.json === true
  return {
    json,
    colors: picocolors.createColors(stdout.isTTY && !noColour),
    answer: (value, render) =>
      stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : ensureNewline(render())),
    line: (value, render) => stdout.write(`${json ? JSON.stringify(value) : render()}\n`),
    note: (text) => stderr.write(`${text}\n`),
  }
}

function ensureNewline(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}
