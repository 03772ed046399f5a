/**
 * The clock port on this machine.
 *
 * Monotonic time is `performance.now()` plus every suspend that it missed. Most systems stop their
 * monotonic clock while the machine sleeps or a virtual machine is suspended, though time since boot
 * goes on. Boot time is therefore compared with it every 100 ms of use; where boot time is more than
 * 250 ms further, the difference is added for good. Nothing is ever subtracted, so time never goes
 * back, and the wall clock plays no part.
 *
 * Not promised: that a suspend shows at once. A call within 100 ms after waking may not see it yet, and
 * a hypervisor that hides the suspend from boot time as well hides it from us.
 */
import { uptime } from 'node:os'
import type { Clock, Timer } from '../ports/clock.ts'

/** Where time comes from, in milliseconds; other sources serve tests. */
export type ClockSources = {
  readonly performanceMs: () => number
  readonly bootMs: () => number
  readonly wallMs: () => number
}

/** Reading boot time opens a file on Linux, so it is not done on each call. */
const SAMPLE_INTERVAL_MS = 100
/** Far above the resolution of boot time (10 ms), far below any margin that guards a deadline. */
const SUSPEND_MIN_MS = 250
/** A sample whose two clocks were read further apart than this compares different moments. */
const SAMPLE_SPREAD_MAX_MS = 20
/** Longer timeouts fire at once in Node. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

export function createSystemClock(
  sources: ClockSources = {
    performanceMs: () => performance.now(),
    bootMs: () => uptime() * 1000,
    wallMs: () => Date.now(),
  },
): Clock {
  const { performanceMs, bootMs, wallMs } = sources
  let sampledAtMs = performanceMs()
  let sampledBootMs = bootMs()
  let nextSampleMs = sampledAtMs + SAMPLE_INTERVAL_MS
  let suspendedMs = 0

  const sample = () => {
    const beforeMs = performanceMs()
    const nowBootMs = bootMs()
    const nowMs = performanceMs()
    // Stopped in between: the next call samples again.
    if (nowMs - beforeMs > SAMPLE_SPREAD_MAX_MS) return
    const missedMs = nowBootMs - sampledBootMs - (nowMs - sampledAtMs)
    if (missedMs > SUSPEND_MIN_MS) suspendedMs += missedMs
    sampledAtMs = nowMs
    sampledBootMs = nowBootMs
    nextSampleMs = nowMs + SAMPLE_INTERVAL_MS
  }
  const monotonicMs = () => {
    const nowMs = performanceMs()
    if (nowMs >= nextSampleMs) sample()
    return nowMs + suspendedMs
  }
  return {
    monotonicMs,
    wallMs,
    schedule: (delayMs, callback) => schedule(monotonicMs, delayMs, callback),
  }
}

/** Node's timers may fire a millisecond early and overflow after 24 days; this one does neither. */
function schedule(monotonicMs: () => number, delayMs: number, callback: () => void): Timer {
  // "After this turn", which a timer of a millisecond would make a long time of.
  if (delayMs <= 0) {
    const immediate = setImmediate(callback)
    return { cancel: () => clearImmediate(immediate) }
  }
  const dueMs = monotonicMs() + delayMs
  const wait = () => setTimeout(fire, Math.min(TIMEOUT_MAX_MS, Math.ceil(dueMs - monotonicMs())))
  const fire = () => {
    if (monotonicMs() >= dueMs) callback()
    else timer = wait()
  }
  let timer = wait()
  return { cancel: () => clearTimeout(timer) }
}
