/**
 * Values of the options that belong to one command only. Commander names the option; these say what to
 * write instead.
 */
import { InvalidArgumentError } from 'commander'
import { DURATION_FORM, durationMs } from './setting-kinds.ts'

/** Milliseconds. */
export function parseDuration(text: string): number {
  const milliseconds = durationMs(text)
  if (milliseconds !== null) return milliseconds
  throw new InvalidArgumentError(`Write ${DURATION_FORM}.`)
}

export function parseCount(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (Number.isSafeInteger(value) && value >= min && value <= max) return value
    const range = max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `${min} to ${max}`
    throw new InvalidArgumentError(`Write a whole number, ${range}.`)
  }
}
