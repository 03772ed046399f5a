/** Waiting for a condition, with a deadline: what tests do instead of sleeping. */
import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 10

/**
 * Calls `check` about every 10 ms until it gives something other than false, null or undefined, and
 * returns that. A check that throws counts as not yet.
 *
 * @throws Error when the time is over, naming `what` and the last error of the check
 * @example await eventually(() => worker.owned() === 64, { timeoutMs: 5000, what: '64 owned' })
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: { readonly timeoutMs: number; readonly what: string },
): Promise<Exclude<T, false | null | undefined>> {
  const end = performance.now() + options.timeoutMs
  let lastError: unknown
  for (;;) {
    try {
      const value = await check()
      if (value !== false && value !== null && value !== undefined) {
        return value as Exclude<T, false | null | undefined>
      }
      lastError = undefined
    } catch (error) {
      lastError = error
    }
    if (performance.now() >= end) {
      throw new Error(`not within ${options.timeoutMs} ms: ${options.what}`, {
        ...(lastError === undefined ? {} : { cause: lastError }),
      })
    }
    await delay(POLL_MS)
  }
}
