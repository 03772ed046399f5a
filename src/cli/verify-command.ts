/**
 * `tenure verify`: did a run keep its promises? Reads what the resources accepted and what etcd granted,
 * and says which promises are proved, with each violation by name. By default it looks at the last run
 * of `tenure dev --for` in this folder.
 */
import type { Command } from 'commander'
import { parseAcceptLog, parseInputs } from '../evidence/accept-log.ts'
import {
  type Distribution,
  distributionOf,
  type HistogramBucket,
  histogramOf,
} from '../evidence/distribution.ts'
import { describeGap, describeViolation, PROMISES, type Violation } from '../evidence/findings.ts'
import { type HistoryLog, parseHistory } from '../evidence/history-log.ts'
import { type Verdict, type Verification, verifyRun } from '../evidence/verify.ts'
import { CliError, usageError } from './cli-error.ts'
import type { CommandImplementations } from './commands.ts'
import type { CliContext } from './context.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { loadConfiguration } from './load-configuration.ts'
import { createOutput, type Output, type OutputFlags } from './output.ts'

const DEV_FILES = {
  accepts: '.tenure/dev/ledger.jsonl',
  history: '.tenure/dev/history.jsonl',
  inputs: '.tenure/dev/published.jsonl',
} as const
const BAR_WIDTH = 40
/** More lines than that help nobody at a terminal; `--json` has them all. */
const LINES_MAX = 100

type VerifyFlags = OutputFlags & {
  readonly accepts?: string
  readonly history?: string
  readonly inputs?: string
  readonly etcd?: boolean
}

/** 0: proved. 1: violated, or inconclusive, which the answer tells apart. */
export async function runVerify(
  command: Command,
  context: CliContext,
  { readHistory }: CommandImplementations,
): Promise<ExitCode> {
  const flags = command.optsWithGlobals<VerifyFlags>()
  const output = await createOutput(context, flags)
  if (flags.etcd === true && flags.history !== undefined) {
    throw usageError('give either --history or --etcd, not both')
  }
  const acceptsFile = flags.accepts ?? DEV_FILES.accepts
  // The resource's log first: whatever it holds was granted before the history is read.
  const accepts = parseAcceptLog(readLog(context, acceptsFile, '--accepts'), acceptsFile)
  const inputs = readInputs(context, flags)
  let history: HistoryLog
  if (flags.etcd === true) {
    if (readHistory === undefined) throw usageError('this build cannot read from etcd')
    const { config } = loadConfiguration(command, context)
    const [group, another] = config.groups
    if (group === undefined || another !== undefined) {
      throw usageError('verify --etcd needs one group: name it with --group or TENURE_GROUP')
    }
    history = await readHistory(config, group)
  } else {
    const file = flags.history ?? DEV_FILES.history
    history = parseHistory(readLog(context, file, '--history'), file)
  }
  const verification = verifyRun({ accepts, history, inputs })
  output.answer(replyOf(verification), () => describe(verification, output))
  return verification.verdict === 'proved' ? EXIT.ok : EXIT.failed
}

/** The demo's list goes with the demo's log; another log has the list that is named, or none. */
function readInputs(context: CliContext, flags: VerifyFlags): readonly string[] | null {
  const file = flags.inputs ?? (flags.accepts === undefined ? DEV_FILES.inputs : null)
  return file === null ? null : parseInputs(readLog(context, file, '--inputs'), file)
}

function readLog(context: CliContext, file: string, flag: string): string {
  try {
    return context.readFile(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new CliError(
      'invalid-argument',
      EXIT.usage,
      `${file} cannot be read (${code}): name the file with ${flag}, or run \`tenure dev --for 30s\` in this folder first`,
    )
  }
}

type Durations = Distribution & {
  readonly count: number
  readonly histogram: readonly HistogramBucket[]
}

function replyOf({ ownerlessMs, overlapMs, ...rest }: Verification) {
  return {
    ...rest,
    ownerlessMs: ownerlessMs === null ? null : durationsOf(ownerlessMs),
    overlapMs: durationsOf(overlapMs),
  }
}

function durationsOf(values: readonly number[]): Durations {
  return { count: values.length, ...distributionOf(values), histogram: histogramOf(values) }
}

function describe(verification: Verification, { colors }: Output): string {
  const { verdict, promises, violations, gaps, ownerlessMs, overlapMs } = verification
  const colour = (word: Verdict | 'not-checked') => {
    if (word === 'proved') return colors.green(word)
    return word === 'violated' ? colors.red(word) : colors.yellow(word)
  }
  return [
    `${colors.bold(colour(verdict))}: ${verification.grants} grants, ${verification.accepted} accepted, ${verification.refused} refused`,
    ...PROMISES.map((promise) => `  ${promise.padEnd(3)}  ${colour(promises[promise])}`),
    ...atMost(foldedViolations(violations).map(colors.red), 'violations'),
    ...atMost(
      gaps.map((gap) => colors.yellow(`gap: ${describeGap(gap)}`)),
      'gaps',
    ),
    ...(ownerlessMs === null
      ? ['ownerless: not measured, etcd keeps no times of sessions']
      : describeDurations('ownerless', durationsOf(ownerlessMs))),
    ...describeDurations('overlap of effects under successive tokens', durationsOf(overlapMs)),
  ].join('\n')
}

/** The first of each kind, partition and generations, with how many are like it. */
function foldedViolations(violations: readonly Violation[]): readonly string[] {
  const alike = new Map<string, { readonly first: Violation; count: number }>()
  for (const violation of violations) {
    const { promise, kind, partition, generations, detail } = violation
    const what = partition === null ? detail : generations.join(' ')
    const id = `${promise} ${kind} ${partition} ${what}`
    const known = alike.get(id)
    if (known === undefined) alike.set(id, { first: violation, count: 1 })
    else known.count += 1
  }
  return [...alike.values()].map(({ first, count }) => {
    const more = count === 1 ? '' : ` (and ${count - 1} more of these generations)`
    return `${describeViolation(first)}${more}`
  })
}

function atMost(lines: readonly string[], what: string): readonly string[] {
  if (lines.length <= LINES_MAX) return lines
  const left = lines.length - LINES_MAX
  return [...lines.slice(0, LINES_MAX), `and ${left} more ${what}: --json names all`]
}

function describeDurations(
  what: string,
  { count, p50, p99, max, histogram }: Durations,
): readonly string[] {
  const most = Math.max(1, ...histogram.map((bucket) => bucket.count))
  return [
    `${what}: ${count} times, p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`,
    ...histogram.map((bucket) => {
      const upTo = bucket.upToMs === null ? 'longer' : `<= ${bucket.upToMs} ms`
      const bar = '#'.repeat(Math.ceil((bucket.count / most) * BAR_WIDTH))
      return `  ${upTo.padStart(11)}  ${String(bucket.count).padStart(6)}  ${bar}`.trimEnd()
    }),
  ]
}
