/**
 * The README's table of settings, made of the list that the program itself uses.
 */
import { displayValue } from './configuration.ts'
import { SETTINGS } from './settings.ts'

/** Markdown, one row per setting, with a line end after the last. */
export function renderSettingsTable(): string {
  const rows = SETTINGS.map((setting) => {
    const variables = [setting.variable, setting.foreignVariable].filter((name) => name !== null)
    return [
      code(setting.name),
      setting.flag === null ? '' : code(setting.flag),
      variables.map(code).join(', '),
      setting.byDefault === null ? '' : code(displayValue(setting, setting.byDefault)),
      setting.description,
    ]
  })
  const head = ['File', 'Flag', 'Variable', 'Default', 'What it is']
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')
}

function code(text: string): string {
  return `\`${text}\``
}
