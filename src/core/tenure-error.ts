/**
 * The one error class of the public surface. Expected outcomes inside are values; this is thrown at
 * the edge (bad configuration, refused work, unreachable servers) and for bugs.
 */

/** Closed list of what can be wrong; stable, also the `code` of HTTP problems and CLI errors. */
export type TenureErrorCode =
  | 'invalid-argument'
  | 'invalid-name'
  | 'invalid-config'
  | 'unknown-group'
  | 'unknown-partition'
  | 'unknown-member'
  | 'unknown-rebalance'
  | 'config-mismatch'
  | 'record-version-unknown'
  | 'record-malformed'
  | 'member-name-in-use'
  | 'not-owner'
  | 'work-refused'
  | 'lost'
  | 'draining'
  | 'overloaded'
  | 'stopped'
  | 'evicted'
  | 'conflict'
  | 'precondition-failed'
  | 'store-unreachable'
  | 'broadcast-unreachable'
  | 'store-refused'
  | 'timed-out'
  | 'unauthorized'
  | 'binary-missing'
  | 'fence-refused'
  | 'fence-not-ready'
  | 'invariant-broken'

/** @example try { p.check() } catch (error) { if (isTenureError(error, 'lost')) return; throw error } */
export class TenureError extends Error {
  readonly code: TenureErrorCode
  /** Machine-readable context (field names, both values of a mismatch); never a secret. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: TenureErrorCode,
    message: string,
    options: {
      cause?: unknown
      details?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'TenureError'
    this.code = code
    this.details = options.details ?? {}
  }
}

export function createTenureError(
  code: TenureErrorCode,
  message: string,
  options?: { cause?: unknown; details?: Readonly<Record<string, unknown>> },
): TenureError {
  return new TenureError(code, message, options)
}

/**
 * True for a TenureError, of the given code if one is named. By name, not by class: a worker's module may
 * have been bundled with a copy of its own.
 */
export function isTenureError(error: unknown, code?: TenureErrorCode): error is TenureError {
  if (!(error instanceof Error) || error.name !== 'TenureError') return false
  return code === undefined || (error as TenureError).code === code
}
