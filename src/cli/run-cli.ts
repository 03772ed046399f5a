/**
 * The command line as one function: words in, exit code out. Every failure ends here: one line for
 * people on stderr (`tenure: …`), or one JSON object with `--json`.
 */

import { Command, CommanderError } from 'commander'
import { isTenureError } from '../core/tenure-error.ts'
import type { Act } from './act.ts'
import { CliError, usageError } from './cli-error.ts'
import type { CommandImplementations } from './commands.ts'
import type { CliContext } from './context.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'
import { addOperatorCommands } from './operator-commands.ts'
import { addProcessCommands } from './process-commands.ts'

const EPILOGUE = `
Settings: flag > TENURE_* variable > tenure.config.json > default; \`tenure config\` shows them all.
Exit codes: 0 ok, 1 failed, 2 usage, 3 dependency unreachable, 4 not found, 5 conflict, 6 timed out,
130 interrupted.
`

/** @param words without the program's own name. */
export async function runCli(
  words: readonly string[],
  context: CliContext,
  implementations: CommandImplementations,
): Promise<number> {
  let exitCode: number = EXIT.ok
  const act: Act =
    (action) =>
    async (...all) => {
      const command = all.at(-1) as Command
      exitCode = await action(command, ...(all.slice(0, -2) as (string | undefined)[]))
    }
  const program = createProgram(context, implementations, act)
  try {
    await program.parseAsync(words, { from: 'user' })
    return exitCode
  } catch (error) {
    const failure = failureOf(error, program, words)
    if (failure === null) return EXIT.ok
    const { code, message } = failure
    const report = { error: { code, message, exitCode: failure.exitCode } }
    const text = message.replace(/^/gm, 'tenure: ')
    context.stderr.write(`${words.includes('--json') ? JSON.stringify(report) : text}\n`)
    return failure.exitCode
  }
}

function createProgram(
  context: CliContext,
  implementations: CommandImplementations,
  act: Act,
): Command {
  const program = new Command('tenure')
    .description('Partition ownership with generations, on etcd and NATS')
    .version(context.version)
    .helpCommand(false)
    .addHelpText('after', EPILOGUE)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      outputError: () => undefined,
      getOutHasColors: () => false,
    })
  addProcessCommands(program, context, implementations, act)
  addOperatorCommands(program, context, act)
  return program
}

/** Null: help or the version was asked for, and shown. */
function failureOf(error: unknown, program: Command, words: readonly string[]): CliError | null {
  if (error instanceof CliError) return error
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return null
    if (error.code === 'commander.help') return usageError('name a command')
    return usageError(usageLine(error.message, program, words))
  }
  if (isTenureError(error)) return new CliError(error.code, exitCodeOf(error.code), error.message)
  // A system error says what failed in one line; anything else is a bug, whose place is needed.
  const isOfSystem = error instanceof Error && 'syscall' in error
  const text = error instanceof Error && !isOfSystem ? error.stack : String(error)
  return new CliError('failed', EXIT.failed, text ?? 'unknown failure')
}

/** Commander's message on one line, with what to do. */
function usageLine(message: string, program: Command, words: readonly string[]): string {
  const text = message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/, ': did you mean $1?')
  if (text !== message.replace(/^error: /, '') || text.endsWith('.'))
    return text.replaceAll('\n', ' ')
  const verb = program.commands.find((command) => command.name() === words[0])?.name()
  const help = verb === undefined ? 'tenure --help' : `tenure ${verb} --help`
  return `${text.replaceAll('\n', ' ')}: \`${help}\` shows what there is`
}
