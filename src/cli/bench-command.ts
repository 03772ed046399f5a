/**
 * `tenure bench`: Tenure beside what etcd and NATS would allow. It starts servers of its own unless flags
 * name some; the environment and the configuration file never do, for a benchmark writes without end
 * and must not fall upon a cluster that somebody merely works with.
 *
 * stdout gets the tables, or with `--json` alone the results; files are for keeping.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Act } from './act.ts'
import { CliError } from './cli-error.ts'
import type { BenchAnswer, BenchRequest, CommandImplementations } from './commands.ts'
import type { CliContext } from './context.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { type LoadedConfiguration, loadConfiguration } from './load-configuration.ts'
import { parseCount } from './option-values.ts'
import { addSettingFlags } from './setting-flags.ts'

type Bench = NonNullable<CommandImplementations['bench']>

type BenchFlags = {
  readonly quick?: boolean
  readonly json?: true | string
  readonly markdown?: string
  readonly svg?: string
  readonly maxPartitions: number
  readonly seed: number
  readonly rivals?: string
  readonly profile?: string
}

const SEED_MAX = 2 ** 32
const PARTITIONS_MAX = 1_000_000

export function addBench(program: Command, context: CliContext, bench: Bench, act: Act): void {
  const command = program
    .command('bench')
    .argument('[scenarios...]', 'acquire, churn, failover … (default: all)')
    .description('measure Tenure beside the limit of etcd and NATS, on servers of its own')
    .option('--quick', 'fewer rounds: all scenarios in under 20 minutes')
    .option('--max-partitions <number>', 'leave larger cases out', parseCount(1), PARTITIONS_MAX)
    .option('--markdown <file>', 'write the tables as Markdown')
    .option('--svg <folder>', 'write one picture per scenario')
    .option('--seed <number>', 'seed of all that is random', parseCount(0, SEED_MAX), 1)
    .option('--rivals <module>', 'module whose `rivals` are measured too')
    .option('--profile <folder>', 'write a CPU profile of each process')
  addSettingFlags(
    command,
    ['connection'],
    ['--json [file]', 'results as JSON, to stdout or a file'],
  )
  command.action(act((given) => runBench(given, context, bench)))
}

async function runBench(command: Command, context: CliContext, bench: Bench): Promise<ExitCode> {
  const flags = command.optsWithGlobals<BenchFlags>()
  const answer = await bench(requestOf(command, flags, context), context.interrupted)
  if (context.stderr.isTTY) context.stderr.write('\n')
  const json = `${JSON.stringify(answer.report, null, 2)}\n`
  if (typeof flags.json === 'string') write(context, flags.json, json)
  if (flags.markdown !== undefined) write(context, flags.markdown, answer.markdown)
  if (flags.svg !== undefined) writePictures(context, flags.svg, answer.svg)
  context.stdout.write(flags.json === true ? json : answer.markdown)
  if (!context.interrupted.aborted) return EXIT.ok
  throw new CliError('interrupted', EXIT.interrupted, 'interrupted: the rest was not measured')
}

function requestOf(command: Command, flags: BenchFlags, context: CliContext): BenchRequest {
  const loaded = loadConfiguration(command, context)
  const { etcd, nats } = loaded.config
  const { workingFolder } = context
  return {
    scenarios: command.args,
    quick: flags.quick === true,
    partitionsMax: flags.maxPartitions,
    seed: flags.seed,
    etcd: isNamed(loaded, 'etcd.endpoints') ? etcd : null,
    nats: isNamed(loaded, 'nats.servers') ? nats : null,
    rivalsModule: flags.rivals === undefined ? null : resolve(workingFolder, flags.rivals),
    profileFolder: flags.profile === undefined ? null : resolve(workingFolder, flags.profile),
    progress: progressOf(context),
  }
}

function isNamed({ settings }: LoadedConfiguration, name: string): boolean {
  return settings.find(({ setting }) => setting.name === name)?.origin.layer === 'flag'
}

/** One line that is written over on a terminal; one line after the other elsewhere. */
function progressOf({ stderr, clock }: CliContext): (text: string) => void {
  const beganMs = clock.monotonicMs()
  return (text) => {
    const seconds = Math.round((clock.monotonicMs() - beganMs) / 1000)
    const line = `${String(seconds).padStart(5)} s  ${text}`
    stderr.write(stderr.isTTY ? `\r\u001b[K${line}` : `${line}\n`)
  }
}

function writePictures(context: CliContext, folder: string, svg: BenchAnswer['svg']): void {
  const path = resolve(context.workingFolder, folder)
  mkdirSync(path, { recursive: true })
  for (const [scenario, picture] of svg) writeFileSync(join(path, `${scenario}.svg`), picture)
}

function write({ workingFolder }: CliContext, file: string, text: string): void {
  writeFileSync(resolve(workingFolder, file), text)
}
