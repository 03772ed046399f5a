/**
 * Verbs that run something here: dev, serve, worker; and those that look at what is here: doctor, verify, config.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { Act } from './act.ts'
import { addBench } from './bench-command.ts'
import { CliError, usageError } from './cli-error.ts'
import type { CommandImplementations, DevOptions } from './commands.ts'
import { describeOrigin, displayValue } from './configuration.ts'
import type { CliContext } from './context.ts'
import type { Check, DoctorReport } from './doctor.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { type LoadedConfiguration, loadConfiguration } from './load-configuration.ts'
import { parseCount, parseDuration } from './option-values.ts'
import { createOutput, type Output, type OutputFlags } from './output.ts'
import { addSettingFlags } from './setting-flags.ts'
import { renderSettingsTable } from './settings-table.ts'
import { loadTable } from './table.ts'

const ALL = [
  'scope',
  'access',
  'connection',
  'member',
  'listener',
  'health',
  'log',
  'group',
] as const

export function addProcessCommands(
  program: Command,
  context: CliContext,
  implementations: CommandImplementations,
  act: Act,
): void {
  const { serve, worker, dev, bench } = implementations
  program.commandsGroup('Run:')
  if (dev !== undefined) addDev(program, context, dev, act)
  if (serve !== undefined) addServe(program, context, serve, act)
  if (worker !== undefined) addWorker(program, context, worker, act)
  program.commandsGroup('Check:')
  addSettingFlags(program.command('doctor').description('check this machine, etcd and NATS'), [
    'scope',
    'connection',
    'group',
  ]).action(act((command) => runDoctor(command, context, implementations)))
  addVerify(program, context, implementations, act)
  if (bench !== undefined) addBench(program, context, bench, act)
  addSettingFlags(
    program.command('config').description('show every setting and where it comes from'),
    ALL,
  )
    .option('--markdown', 'the table of all settings, for documents')
    .action(act((command) => showConfiguration(command, context)))
}

function addDev(
  program: Command,
  context: CliContext,
  dev: NonNullable<CommandImplementations['dev']>,
  act: Act,
): void {
  const command = program
    .command('dev')
    .description('start etcd, NATS, serve, workers and a demo under load, all here')
    .option('--for <time>', 'run that long under load with kills and pauses', parseDuration)
    .option('--report <file>', 'write what happened as JSON')
    .option('--workers <number>', 'worker processes', parseCount(1, 64), 3)
    .option('--seed <number>', 'seed of kills, pauses and moves', parseCount(0))
    .addOption(new Option('--port <number>', 'port of its serve process (TENURE_HTTP_PORT)'))
  addSettingFlags(command, ['group', 'log']).action(
    act((given) => dev(devOptions(given, loadConfiguration(given, context)), context.interrupted)),
  )
}

function devOptions(command: Command, loaded: LoadedConfiguration): DevOptions {
  const { config, settings } = loaded
  const options = command.opts<{ for?: number; report?: string; workers: number; seed?: number }>()
  const port = settings.find(({ setting }) => setting.name === 'http.port')
  return {
    forMs: options.for ?? null,
    reportFile: options.report ?? null,
    workers: options.workers,
    partitions: config.settings.partitions ?? 64,
    port: port?.origin.layer === 'default' ? null : config.http.port,
    seed: options.seed ?? null,
    config,
  }
}

function addServe(
  program: Command,
  context: CliContext,
  serve: NonNullable<CommandImplementations['serve']>,
  act: Act,
): void {
  const command = program
    .command('serve')
    .description('serve the HTTP API and run the rebalancer of its groups')
  addSettingFlags(command, ['scope', 'connection', 'listener', 'log', 'group'])
    .option('--token-file <file>', 'file that holds the bearer token (TENURE_HTTP_TOKEN_FILE)')
    .action(
      act((given) => {
        const { config } = loadConfiguration(given, context)
        if (config.groups.length > 0) return serve(config, context.interrupted)
        throw usageError('serve needs a group: name it with --group or TENURE_GROUP')
      }),
    )
}

function addWorker(
  program: Command,
  context: CliContext,
  worker: NonNullable<CommandImplementations['worker']>,
  act: Act,
): void {
  const command = program
    .command('worker')
    .argument('[module]', 'JavaScript module whose default or `worker` export is the options')
    .description('run a worker: your module, or the demo beside a running `tenure dev`')
  addSettingFlags(command, ['scope', 'connection', 'member', 'health', 'log', 'group']).action(
    act((given, module) => {
      const { config, dev } = loadConfiguration(given, context)
      if (module === undefined) {
        if (dev !== null) return worker(config, { script: null, dev }, context.interrupted)
        throw usageError(
          'worker needs a module: `tenure worker ./worker.js`, or start `tenure dev` in this folder for its demo worker',
        )
      }
      const script = resolve(context.workingFolder, module)
      if (existsSync(script)) return worker(config, { script, dev }, context.interrupted)
      throw usageError(`there is no module ${script}: correct the path`)
    }),
  )
}

function addVerify(
  program: Command,
  context: CliContext,
  means: CommandImplementations,
  act: Act,
): void {
  const command = program
    .command('verify')
    .description(
      'prove or disprove the promises from logs of a run; default: the last of `dev --for`',
    )
    .option('--accepts <file>', 'accept log of the protected resources')
    .option('--history <file>', 'ownership history, as `dev --for` writes it')
    .option('--inputs <file>', 'acknowledged inputs, of which none may be lost or doubled')
    .option('--etcd', 'read the ownership history from etcd, as far as it is kept')
  addSettingFlags(command, ['scope', 'connection']).action(
    act(async (given) => (await import('./verify-command.ts')).runVerify(given, context, means)),
  )
}

async function showConfiguration(command: Command, context: CliContext): Promise<ExitCode> {
  if (command.opts<{ markdown?: boolean }>().markdown === true) {
    context.stdout.write(renderSettingsTable())
    return EXIT.ok
  }
  const { settings } = loadConfiguration(command, context)
  const output = await createOutput(context, command.optsWithGlobals<OutputFlags>())
  const table = await loadTable(output)
  const shown = settings.map(({ setting, value, origin }) => ({
    name: setting.name,
    value: value === null ? null : displayValue(setting, value),
    origin: value === null ? 'not set' : describeOrigin(origin),
    variable: setting.variable,
    flag: setting.flag?.split(' ')[0] ?? null,
    description: setting.description,
  }))
  output.answer({ settings: shown }, () =>
    table(
      ['SETTING', 'VALUE', 'ORIGIN'],
      shown.map(({ name, value, origin }) => [name, value ?? '-', origin]),
    ),
  )
  return EXIT.ok
}

async function runDoctor(
  command: Command,
  context: CliContext,
  means: CommandImplementations,
): Promise<ExitCode> {
  const { config } = loadConfiguration(command, context)
  const output = await createOutput(context, command.optsWithGlobals<OutputFlags>())
  const { gatherFacts } = await import('./doctor-facts.ts')
  const { examine } = await import('./doctor.ts')
  const facts = await gatherFacts(config, context, means)
  if (context.interrupted.aborted) {
    throw new CliError('interrupted', EXIT.interrupted, 'interrupted')
  }
  const report = examine(facts)
  output.answer(report, () => describeReport(report, output))
  if (report.verdict !== 'fail') return EXIT.ok
  return facts.store.status.ok && facts.broadcasts.every(({ answer }) => answer.ok)
    ? EXIT.failed
    : EXIT.unreachable
}

function describeReport(report: DoctorReport, output: Output): string {
  const { colors } = output
  const colour = { ok: colors.green, warn: colors.yellow, fail: colors.red }
  const lines = report.checks.flatMap((check: Check) => {
    const line = `${colour[check.verdict](check.verdict.padEnd(4))}  ${check.name}: ${check.detail}`
    return check.remedy === '' ? [line] : [line, `      ${colors.dim(`do: ${check.remedy}`)}`]
  })
  return lines.join('\n')
}
