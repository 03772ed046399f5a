/**
 * Whether an error says that a server could not be reached, which is no fault of the message or the job
 * that met it: it is tried until the server is back, and never counts towards a dead letter.
 *
 * Not promised: a right answer for errors that a handler makes up. It may say so itself (`isOutage`).
 */
import { isTenureError } from '../core/tenure-error.ts'

/** While a server is away it is asked this often, so that work goes on soon after it is back (L4). */
export const OUTAGE_WAIT_MAX_MS = 2000

const CODES = new Set<unknown>([
  ...['store-unreachable', 'broadcast-unreachable', 'overloaded'],
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH'],
  ...['ENETUNREACH', 'ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT'],
])
/** `fetch` wraps once, a handler perhaps again. */
const CAUSES_MAX = 4

export function isOutage(error: unknown): boolean {
  let link = error
  for (let depth = 0; link instanceof Error && depth < CAUSES_MAX; depth += 1) {
    if (CODES.has((link as { code?: unknown }).code)) return true
    // A Tenure error that is something else has judged its cause.
    if (isTenureError(link)) return false
    link = link.cause
  }
  return false
}
