/**
 * Settings as commander options, made of the list in `settings.ts`.
 */
import { type Command, Option } from 'commander'
import { displayValue } from './configuration.ts'
import type { Setting, SettingSection } from './setting.ts'
import { SETTINGS } from './settings.ts'

/** Adds the flags of the sections, and those that every command has. `json`: what `--json` takes and means. */
export function addSettingFlags(
  command: Command,
  sections: readonly SettingSection[],
  json: readonly [string, string] = ['--json', 'answer in JSON'],
): Command {
  for (const setting of SETTINGS) {
    if (setting.flag === null || !sections.includes(setting.section)) continue
    command.addOption(optionOf(setting, setting.flag))
    if (setting.kind.type === 'boolean') {
      command.addOption(new Option(setting.flag.replace('--', '--no-'), 'the opposite'))
    }
  }
  return command
    .option('--config <file>', 'configuration file (TENURE_CONFIG; default tenure.config.json)')
    .option(...json)
    .option('--no-color', 'answer without colour (NO_COLOR)')
}

/** Text of each setting's flag that was given, by setting name. */
export function givenFlags(command: Command): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  const options: Readonly<Record<string, unknown>> = command.optsWithGlobals()
  for (const setting of SETTINGS) {
    if (setting.flag === null) continue
    const value = options[new Option(setting.flag).attributeName()]
    if (value !== undefined) given.set(setting.name, String(value))
  }
  return given
}

function optionOf(setting: Setting, flag: string): Option {
  const byDefault = displayValue(setting, setting.byDefault)
  const from = [setting.variable, setting.foreignVariable].filter(Boolean).join(', ')
  const described = `${setting.description} (${from}${byDefault === '' ? '' : `; default ${byDefault}`})`
  const option = new Option(flag, described)
  const isList = setting.kind.type === 'names' || setting.kind.type === 'servers'
  // A list may be given in one flag or in several.
  if (isList)
    option.argParser((text: string, before?: string) => [before, text].filter(Boolean).join(','))
  return option
}
