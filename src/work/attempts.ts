/**
 * One piece of work, tried until it is done, given up after too many failures, or the grant ends.
 *
 *   try ──▶ done
 *    │ ▲ throws            failures < most: wait, longer each time, without a place in the worker
 *    │ │                   failures = most: buried
 *    └─┘                   a server is out of reach: no failure, wait for it
 *    any ──▶ thrown through: the gate refused, the partition is lost, the fence refused
 */
import { isTenureError } from '../core/tenure-error.ts'
import type { Clock } from '../ports/clock.ts'
import { pause } from '../runtime/waiting.ts'
import type { Partition } from '../runtime/worker-options.ts'
import { type FencedResult, requireOk, tellRefusal } from './fenced-results.ts'
import { OUTAGE_WAIT_MAX_MS } from './outages.ts'

export type BackOff = {
  /** Default 200 ms. */
  readonly firstMs?: number
  /** Each wait is twice the one before, up to this. Default 30,000 ms. */
  readonly maxMs?: number
}

export type AttemptOptions = {
  readonly clock: Clock
  readonly backOff: BackOff
  /** Failures before this grant, as far as they are stored. */
  readonly failuresBefore: number
  readonly failuresMax: number
  /** @param attempt 1 for the first, counting earlier grants' as far as they are stored */
  readonly run: (attempt: number) => FencedResult | Promise<FencedResult>
  /** @param failures so far; an outage adds none */
  readonly onFailure: (failures: number, error: unknown) => void
  readonly isOutage: (error: unknown) => boolean
  /** Puts it aside for good. */
  readonly bury: (failures: number, error: unknown) => Promise<void>
}

const BACK_OFF_FIRST_MS = 200
const BACK_OFF_MAX_MS = 30_000

/**
 * False when the partition is being given up, so that the work was left to the next owner.
 * @throws TenureError `work-refused`, `lost`, `draining`, `fence-refused`; and whatever `bury` throws
 */
export async function attempt(p: Partition, options: AttemptOptions): Promise<boolean> {
  const { clock, backOff, failuresMax, run, onFailure, bury } = options
  let failures = options.failuresBefore
  for (let tries = 1; !p.draining.aborted; tries += 1) {
    let waitMaxMs = backOff.maxMs ?? BACK_OFF_MAX_MS
    try {
      await p.work(async () => requireOk(await run(failures + 1), p))
      return true
    } catch (error: unknown) {
      if (endsTheGrant(error)) throw error
      if (options.isOutage(error)) waitMaxMs = Math.min(waitMaxMs, OUTAGE_WAIT_MAX_MS)
      else failures += 1
      onFailure(failures, error)
      if (failures >= failuresMax) {
        await p.work(() => bury(failures, error))
        return true
      }
    }
    const doubledMs = (backOff.firstMs ?? BACK_OFF_FIRST_MS) * 2 ** Math.min(tries - 1, 20)
    await pause(clock, Math.min(waitMaxMs, doubledMs), p.draining)
  }
  return false
}

/** Not the message's fault. */
export function endsTheGrant(error: unknown): boolean {
  return (
    isTenureError(error, 'work-refused') ||
    isTenureError(error, 'lost') ||
    isTenureError(error, 'draining') ||
    isTenureError(error, 'fence-refused')
  )
}

/**
 * What to do where the resource refused the token: tell the member what it has sealed, and nothing more
 * if the grant is over, or is seen to be soon. A refusal of a grant that goes on is more than a late
 * write, and is thrown.
 */
export async function afterRefusal(clock: Clock, p: Partition, error: unknown): Promise<void> {
  tellRefusal(p, error)
  await pause(clock, REFUSAL_SETTLES_MS, p.draining)
  if (!p.draining.aborted) throw error
}

/** A member hears of its loss within this time, unless it has not lost anything. */
const REFUSAL_SETTLES_MS = 3000
