/**
 * When a job is to run next. Pure: due times come from the job's own plan and its last run, so every owner
 * computes the same ones, whatever its clock says in between.
 */

/** A missed due time: run each of them, or only the latest. */
export type Missed = 'each' | 'latest'

/** A plan that yields more than this many missed times at once is run through in steps. */
const SKIPPED_MAX = 10_000

/**
 * The next due time after the last run: at or below `nowMs` it is due, above it is to be waited for, null
 * when there is none.
 * @param nextDueMs the plan: the first due time strictly after the given one (null: the first of all)
 */
export function nextRun(
  lastDueMs: number | null,
  nextDueMs: (afterMs: number | null) => number | null,
  missed: Missed,
  nowMs: number,
): number | null {
  let dueMs = after(lastDueMs, nextDueMs)
  if (missed === 'each' || dueMs === null) return dueMs
  for (let skipped = 0; skipped < SKIPPED_MAX; skipped += 1) {
    const laterMs = after(dueMs, nextDueMs)
    if (laterMs === null || laterMs > nowMs) return dueMs
    dueMs = laterMs
  }
  return dueMs
}

/** A plan that does not go on would run for ever. */
function after(
  lastMs: number | null,
  nextDueMs: (afterMs: number | null) => number | null,
): number | null {
  const dueMs = nextDueMs(lastMs)
  return dueMs !== null && lastMs !== null && dueMs <= lastMs ? null : dueMs
}

/** Due times `everyMs` apart, aligned to the epoch and shifted by `offsetMs`, none before `fromMs`. */
export function everyInterval(options: {
  readonly everyMs: number
  readonly offsetMs?: number
  readonly fromMs: number
}): (afterMs: number | null) => number {
  const { everyMs, offsetMs = 0, fromMs } = options
  const firstMs = Math.ceil((fromMs - offsetMs) / everyMs) * everyMs + offsetMs
  return (afterMs) => {
    if (afterMs === null || afterMs < firstMs) return firstMs
    return (Math.floor((afterMs - offsetMs) / everyMs) + 1) * everyMs + offsetMs
  }
}
