/**
 * The faults that a client of the in-memory world can be made to meet. Chances are 0 (never) to 1
 * (always) and drawn from the world's seeded random source; delays are drawn evenly from their range.
 * Everything is off at first, and can be changed at any moment.
 */
import type { Random } from '../ports/random.ts'

export type DelayRange = { readonly minMs: number; readonly maxMs: number }

export type StoreFaults = {
  /** Time that a request needs to the server. */
  requestDelay: DelayRange
  /** Time that a reply needs back. */
  replyDelay: DelayRange
  /** Time that a watch's events need; their order is kept. */
  watchDelay: DelayRange
  /** The request never arrives: the call ends as `unknown-outcome` at its timeout, not executed. */
  dropRequestChance: number
  /** The request is executed, the reply never arrives: `unknown-outcome` at the timeout. */
  loseReplyChance: number
  /** The request is executed only after the call has ended as `unknown-outcome`. */
  executeLateChance: number
  /** How long after the call's end a late request is executed, at most. */
  lateMsMax: number
  /** A list or read-only transaction is answered from an older revision, header included. */
  staleReadChance: number
  /** How many revisions back a stale read goes at most. */
  staleRevisionsMax: number
  /** A change is left out when a new watch catches up with history, one draw per change. */
  skipHistoryChance: number
}

/** What can be ordered for one call by `failNext`. */
export type CallFault = 'drop-request' | 'lose-reply' | 'execute-late' | 'not-executed'

export type CallKind = 'transact' | 'list' | 'open-lease' | 'renew-lease' | 'close-lease' | 'status'

export type BroadcastFaults = {
  /** Time that a message needs from its publisher to the server; the order is kept. */
  publishDelay: DelayRange
  /** Time that a message needs from the server to this client; the order is kept. */
  deliverDelay: DelayRange
  /** A message of this client is lost on its way to the server. */
  losePublishedChance: number
  /** A message for this client is lost on its way from the server. */
  loseDeliveredChance: number
}

const QUICK: DelayRange = { minMs: 0.5, maxMs: 0.5 }

export function noStoreFaults(): StoreFaults {
  return {
    requestDelay: QUICK,
    replyDelay: QUICK,
    watchDelay: QUICK,
    dropRequestChance: 0,
    loseReplyChance: 0,
    executeLateChance: 0,
    lateMsMax: 2_000,
    staleReadChance: 0,
    staleRevisionsMax: 10,
    skipHistoryChance: 0,
  }
}

export function noBroadcastFaults(): BroadcastFaults {
  return {
    publishDelay: QUICK,
    deliverDelay: QUICK,
    losePublishedChance: 0,
    loseDeliveredChance: 0,
  }
}

export function drawDelayMs(random: Random, range: DelayRange): number {
  return range.minMs + random.fraction() * (range.maxMs - range.minMs)
}

/** The fault of one call: one draw decides among all chances, so each keeps its probability. */
export function drawCallFault(random: Random, faults: StoreFaults): CallFault | null {
  const draw = random.fraction()
  const drop = faults.dropRequestChance
  const lose = drop + faults.loseReplyChance
  if (draw < drop) return 'drop-request'
  if (draw < lose) return 'lose-reply'
  return draw < lose + faults.executeLateChance ? 'execute-late' : null
}
