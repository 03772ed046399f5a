/**
 * Median, p50, p99 and max of many samples, from the HDR histogram that Node has built in (three
 * significant figures): a library of its own would bring nothing more.
 */
import { createHistogram } from 'node:perf_hooks'
import type { Statistic } from './bench-types.ts'

export type Spread = {
  readonly samples: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** The histogram holds whole numbers from 1 on: thousandths of the unit. */
const SCALE = 1000
const HIGHEST = 2 ** 52

export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { samples: 0, p50: 0, p99: 0, max: 0 }
  const histogram = createHistogram({ lowest: 1, highest: HIGHEST, figures: 3 })
  for (const value of values) histogram.record(Math.max(1, Math.round(value * SCALE)))
  // What is at or below the histogram's lowest value is nothing.
  const at = (percentile: number) => floor(histogram.percentile(percentile))
  return { samples: values.length, p50: at(50), p99: at(99), max: floor(histogram.max) }
}

export function statisticOf(values: readonly number[], statistic: Statistic): number {
  return statistic === 'median' ? median(values) : spreadOf(values)[statistic]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

function floor(scaled: number): number {
  return scaled <= 1 ? 0 : scaled / SCALE
}
