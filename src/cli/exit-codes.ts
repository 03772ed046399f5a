/**
 * Exit codes: part of the command line's contract, stable for scripts.
 */
import type { TenureErrorCode } from '../core/tenure-error.ts'

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  notFound: 4,
  conflict: 5,
  timedOut: 6,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

const EXIT_OF_CODE: Readonly<Record<TenureErrorCode, ExitCode>> = {
  'invalid-argument': EXIT.usage,
  'invalid-name': EXIT.usage,
  'invalid-config': EXIT.usage,
  'store-unreachable': EXIT.unreachable,
  'broadcast-unreachable': EXIT.unreachable,
  'binary-missing': EXIT.unreachable,
  'unknown-group': EXIT.notFound,
  'unknown-partition': EXIT.notFound,
  'unknown-member': EXIT.notFound,
  'unknown-rebalance': EXIT.notFound,
  'config-mismatch': EXIT.conflict,
  'member-name-in-use': EXIT.conflict,
  'not-owner': EXIT.conflict,
  conflict: EXIT.conflict,
  'fence-refused': EXIT.conflict,
  'fence-not-ready': EXIT.unreachable,
  'precondition-failed': EXIT.conflict,
  'timed-out': EXIT.timedOut,
  'record-version-unknown': EXIT.failed,
  'record-malformed': EXIT.failed,
  'work-refused': EXIT.failed,
  lost: EXIT.failed,
  draining: EXIT.failed,
  overloaded: EXIT.failed,
  stopped: EXIT.failed,
  evicted: EXIT.failed,
  'store-refused': EXIT.failed,
  unauthorized: EXIT.failed,
  'invariant-broken': EXIT.failed,
}

/** The exit code that says what a coded error says, or what the HTTP status says of an unknown code. */
export function exitCodeOf(code: string, status = 500): ExitCode {
  if (Object.hasOwn(EXIT_OF_CODE, code)) return EXIT_OF_CODE[code as TenureErrorCode]
  if (status === 400 || status === 422) return EXIT.usage
  if (status === 404) return EXIT.notFound
  if (status === 409 || status === 412) return EXIT.conflict
  if (status === 502 || status === 503) return EXIT.unreachable
  if (status === 408 || status === 504) return EXIT.timedOut
  return EXIT.failed
}
