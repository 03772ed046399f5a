/**
 * What a failed call to etcd means. The one question that matters is whether the call may have been
 * executed: `not-executed` is said only where the request provably never left, or where the server
 * says that it refused before proposing anything. Whatever is not known for certain is
 * `unknown-outcome`.
 *
 * The client library drops the status code from the errors of unary calls, yet keeps it at the head
 * of the message (`14 UNAVAILABLE: ...`); streams carry it as `code`.
 */
import type { StoreFailure, StoreFailureReason } from '../ports/store.ts'

/** A failure, and whether the connection it came over should be given up. */
export type CallFailure = StoreFailure & { readonly connectionSuspect: boolean }

const CODE_UNKNOWN = 2
const CODE_INVALID_ARGUMENT = 3
const CODE_DEADLINE_EXCEEDED = 4
const CODE_NOT_FOUND = 5
const CODE_ALREADY_EXISTS = 6
const CODE_PERMISSION_DENIED = 7
const CODE_RESOURCE_EXHAUSTED = 8
const CODE_FAILED_PRECONDITION = 9
const CODE_OUT_OF_RANGE = 11
const CODE_UNIMPLEMENTED = 12
const CODE_INTERNAL = 13
const CODE_UNAVAILABLE = 14
const CODE_UNAUTHENTICATED = 16

/** The transport's words for a request that never left this process. */
const NEVER_SENT =
  /No connection established|Name resolution failed|Channel closed before call started|Waiting for LB pick|waiting for name resolution|Failed to start HTTP\/2 stream|but the client was already closed/

/** The server's words for a request that it turned down before proposing it. */
const NEVER_PROPOSED =
  /etcdserver: no leader|raft proposal dropped|etcdserver: too many requests|etcdserver: invalid auth token|etcdserver: revision of auth store is old/

export function classifyError(error: unknown): CallFailure {
  const detail = error instanceof Error ? error.message : String(error)
  return failure(reasonOf(codeOf(error, detail), detail), detail, isTransport(error, detail))
}

/** The call's own timer ended it: it may have been sent at any moment before. */
export function timedOut(timeoutMs: number): CallFailure {
  return failure('unknown-outcome', `no answer within ${timeoutMs} ms`, true)
}

export function storeClosed(): CallFailure {
  return failure('not-executed', 'the store is closed', false)
}

/** True when the server wants another token than the one that this connection holds. */
export function isStaleToken(detail: string): boolean {
  return /invalid auth token|revision of auth store is old/.test(detail)
}

function reasonOf(code: number, detail: string): StoreFailureReason {
  if (NEVER_SENT.test(detail) || NEVER_PROPOSED.test(detail)) return 'not-executed'
  switch (code) {
    case CODE_INVALID_ARGUMENT:
    case CODE_NOT_FOUND:
    case CODE_ALREADY_EXISTS:
    case CODE_PERMISSION_DENIED:
    case CODE_FAILED_PRECONDITION:
    case CODE_UNIMPLEMENTED:
    case CODE_UNAUTHENTICATED:
      return 'refused'
    case CODE_OUT_OF_RANGE:
      return detail.includes('compacted') ? 'compacted' : 'refused'
    case CODE_RESOURCE_EXHAUSTED:
      return isRefusedForSize(detail) ? 'refused' : 'unknown-outcome'
    default:
      // Some refusals reach us without a code, as words alone.
      return /requested lease not found|permission denied/.test(detail)
        ? 'refused'
        : 'unknown-outcome'
  }
}

/**
 * No space, or a request too large to send or to take in. An *answer* too large for this client
 * ("Received message larger than max", capital R) is not among them: that call was executed.
 */
function isRefusedForSize(detail: string): boolean {
  return /database space exceeded|grpc: received message larger|Attempted to send message/.test(
    detail,
  )
}

function isTransport(error: unknown, detail: string): boolean {
  switch (codeOf(error, detail)) {
    case CODE_DEADLINE_EXCEEDED:
    case CODE_UNAVAILABLE:
    case CODE_INTERNAL:
    case CODE_UNKNOWN:
      return true
    default:
      return isStaleToken(detail)
  }
}

function codeOf(error: unknown, detail: string): number {
  if (error instanceof Error && 'code' in error && typeof error.code === 'number') return error.code
  const head = /^(\d+) [A-Z_]+:/.exec(detail)
  return head === null ? CODE_UNKNOWN : Number(head[1])
}

function failure(
  reason: StoreFailureReason,
  detail: string,
  connectionSuspect: boolean,
): CallFailure {
  return { ok: false, reason, detail, connectionSuspect }
}
