/**
 * Refusals as `application/problem+json` (RFC 9457). `code` is stable and is what programs read;
 * `detail` is for people and names the remedy. Nothing of an unexpected error's own text leaves the
 * process: its reply says `internal` and the request id, under which the log has the rest.
 */
import type { TenureErrorCode } from '../core/tenure-error.ts'
import type { Refusal } from '../ports/group-access.ts'

/** Codes of the transport itself, beside those that all of Tenure shares. */
export type ProblemCode =
  | TenureErrorCode
  | 'unknown-route'
  | 'method-not-allowed'
  | 'body-too-large'
  | 'media-type-unsupported'
  | 'not-ready'
  | 'internal'

export type FieldProblem = {
  /** Path of the field, as `kind.partition` or `limit`; header names in lower case. */
  readonly field: string
  readonly message: string
}

const STATUS: Readonly<Record<ProblemCode, number>> = {
  'invalid-argument': 400,
  'invalid-name': 400,
  'invalid-config': 400,
  unauthorized: 401,
  'unknown-route': 404,
  'unknown-group': 404,
  'unknown-partition': 404,
  'unknown-member': 404,
  'unknown-rebalance': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'fence-refused': 409,
  'fence-not-ready': 503,
  'config-mismatch': 409,
  'member-name-in-use': 409,
  'not-owner': 409,
  lost: 409,
  evicted: 409,
  'precondition-failed': 412,
  'body-too-large': 413,
  'media-type-unsupported': 415,
  internal: 500,
  'record-version-unknown': 500,
  'record-malformed': 500,
  'binary-missing': 500,
  'invariant-broken': 500,
  'store-refused': 502,
  'not-ready': 503,
  'work-refused': 503,
  draining: 503,
  overloaded: 503,
  stopped: 503,
  'store-unreachable': 503,
  'broadcast-unreachable': 503,
  'timed-out': 504,
}

type ProblemOptions = {
  /** Only where one code has two statuses (`unauthorized`: 401 asks for a token, 403 does not). */
  readonly status?: number
  readonly errors?: readonly FieldProblem[]
  readonly headers?: Readonly<Record<string, string>>
}

/** Thrown by routes and hooks; the error handler turns it into the reply. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly status: number
  readonly errors: readonly FieldProblem[] | null
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail)
    this.name = 'ProblemError'
    this.code = code
    this.status = options.status ?? STATUS[code]
    this.errors = options.errors ?? null
    this.headers = options.headers ?? retryHeaders(this.status, 1000)
  }
}

export function createProblem(
  code: ProblemCode,
  detail: string,
  options?: ProblemOptions,
): ProblemError {
  return new ProblemError(code, detail, options)
}

/** The problem that stands for an operator's change that was not made. */
export function problemOfRefusal(refusal: Refusal): ProblemError {
  const { code, detail, retryAfterMs } = refusal
  if (retryAfterMs === undefined) return createProblem(code, detail)
  return createProblem(code, detail, { headers: retryHeaders(503, retryAfterMs) })
}

/** The reply's body, as JSON text. */
export function problemBody(problem: ProblemError, requestId: string): string {
  return JSON.stringify({
    type: `urn:tenure:problem:${problem.code}`,
    title: problem.code.replaceAll('-', ' '),
    status: problem.status,
    code: problem.code,
    detail: problem.message,
    requestId,
    ...(problem.errors === null ? {} : { errors: problem.errors }),
  })
}

function retryHeaders(status: number, afterMs: number): Record<string, string> {
  if (status !== 503) return {}
  return { 'retry-after': String(Math.max(1, Math.ceil(afterMs / 1000))) }
}
