/**
 * How a command ends other than well: one line for people, a stable code for scripts, an exit code for
 * the shell. Thrown inside commands, caught once in `run-cli.ts`.
 */
import { EXIT, type ExitCode } from './exit-codes.ts'

export class CliError extends Error {
  /** A TenureErrorCode, or one of `usage`, `unreachable`, `interrupted`, `failed`. */
  readonly code: string
  readonly exitCode: ExitCode

  constructor(code: string, exitCode: ExitCode, message: string) {
    super(message)
    this.name = 'CliError'
    this.code = code
    this.exitCode = exitCode
  }
}

export function usageError(message: string): CliError {
  return new CliError('usage', EXIT.usage, message)
}

export function interruptedError(): CliError {
  return new CliError('interrupted', EXIT.interrupted, 'interrupted')
}
