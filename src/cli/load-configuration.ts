/**
 * Collects the layers of the configuration for one command and resolves them.
 */
import type { Command } from 'commander'
import { CliError } from './cli-error.ts'
import {
  type ConfigurationSources,
  type ResolvedSetting,
  resolveConfiguration,
} from './configuration.ts'
import type { CliContext } from './context.ts'
import {
  DEV_ENVIRONMENT_FILE,
  type DevEnvironment,
  devSettings,
  readDevEnvironment,
} from './dev-environment.ts'
import { EXIT } from './exit-codes.ts'
import { givenFlags } from './setting-flags.ts'
import type { TenureConfig } from './tenure-config.ts'

export const DEFAULT_CONFIGURATION_FILE = 'tenure.config.json'

export type LoadedConfiguration = {
  readonly config: TenureConfig
  readonly settings: readonly ResolvedSetting[]
  /** The running `tenure dev` of this folder, if there is one. */
  readonly dev: DevEnvironment | null
}

/** @throws CliError `invalid-config`, one line per problem. */
export function loadConfiguration(command: Command, context: CliContext): LoadedConfiguration {
  const dev = readDevEnvironment(context)
  const resolution = resolveConfiguration({
    flags: givenFlags(command),
    variables: context.variables,
    file: readConfigurationFile(command, context),
    dev: dev === null ? null : { path: DEV_ENVIRONMENT_FILE, values: devSettings(dev) },
    readFile: context.readFile,
  })
  if (resolution.ok) return { config: resolution.config, settings: resolution.settings, dev }
  throw new CliError('invalid-config', EXIT.usage, resolution.problems.join('\n'))
}

/** The file named by `--config` or TENURE_CONFIG must stand; the default one may be absent. */
function readConfigurationFile(
  command: Command,
  context: CliContext,
): ConfigurationSources['file'] {
  const flag: unknown = command.optsWithGlobals()['config']
  const named = typeof flag === 'string' ? flag : context.variables['TENURE_CONFIG'] || null
  const path = named ?? DEFAULT_CONFIGURATION_FILE
  try {
    return { path, text: context.readFile(path) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    if (named === null && code === 'ENOENT') return null
    const where = typeof flag === 'string' ? 'flag --config' : 'variable TENURE_CONFIG'
    throw new CliError(
      'invalid-config',
      EXIT.usage,
      `configuration file ${path} (${named === null ? 'default' : where}) cannot be read (${code}): correct the path or its permissions`,
    )
  }
}
