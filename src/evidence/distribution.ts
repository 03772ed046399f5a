/** Many durations in few numbers. */

export type Distribution = { readonly p50: number; readonly p99: number; readonly max: number }

/** `upToMs` null: everything above the last bound. */
export type HistogramBucket = { readonly upToMs: number | null; readonly count: number }

const BOUNDS_MS = [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000] as const

export function distributionOf(values: readonly number[]): Distribution {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) =>
    roundMs(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0)
  return { p50: at(0.5), p99: at(0.99), max: roundMs(sorted[sorted.length - 1] ?? 0) }
}

/** From the first bucket that has any to the last. */
export function histogramOf(values: readonly number[]): readonly HistogramBucket[] {
  const counts = new Array<number>(BOUNDS_MS.length + 1).fill(0)
  for (const value of values) {
    const found = BOUNDS_MS.findIndex((bound) => value <= bound)
    const index = found < 0 ? BOUNDS_MS.length : found
    counts[index] = (counts[index] ?? 0) + 1
  }
  const buckets = counts.map((count, index) => ({ upToMs: BOUNDS_MS[index] ?? null, count }))
  const first = buckets.findIndex(({ count }) => count > 0)
  return first < 0 ? [] : buckets.slice(first, buckets.findLastIndex(({ count }) => count > 0) + 1)
}

export function roundMs(ms: number): number {
  return Math.round(ms * 10) / 10
}
