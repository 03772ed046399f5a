/**
 * PostgreSQL's times on the machine's monotonic clock. Both are clocks of one machine; how far apart they
 * are is looked at several times a second, so a wall clock that is slewed or set only moves what lies
 * between two looks.
 */
import { machineMs } from '../../src/dev/machine-time.ts'

const LOOK_EVERY_MS = 500

export type MachineClock = {
  /** The wall time's moment on the machine's clock, by the offset seen next to it. */
  toMachineMs(wallMs: number): number
  /** How far the offset moved over the run, in milliseconds. */
  driftMs(): number
  close(): void
}

type Look = { readonly wallMs: number; readonly offsetMs: number }

export function watchMachineClock(): MachineClock {
  const looks: Look[] = [lookNow()]
  const timer = setInterval(() => looks.push(lookNow()), LOOK_EVERY_MS)
  return {
    toMachineMs: (wallMs) => wallMs - nearest(looks, wallMs).offsetMs,
    driftMs() {
      const offsets = looks.map(({ offsetMs }) => offsetMs)
      return offsets.reduce((a, b) => Math.max(a, b)) - offsets.reduce((a, b) => Math.min(a, b))
    },
    close: () => clearInterval(timer),
  }
}

/** `Date.now()` counts whole milliseconds, so the moment is taken at which it counts on. */
function lookNow(): Look {
  const from = Date.now()
  for (;;) {
    const wallMs = Date.now()
    if (wallMs !== from) return { wallMs, offsetMs: wallMs - machineMs() }
  }
}

function nearest(looks: readonly Look[], wallMs: number): Look {
  let low = 0
  let high = looks.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((looks[middle]?.wallMs ?? 0) <= wallMs) low = middle
    else high = middle - 1
  }
  return looks[low] ?? lookNow()
}
