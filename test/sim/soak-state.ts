/**
 * What a soak has done so far, as a file: the next seed, the sums and the failures. Written whole to a
 * neighbour and renamed, so that a soak that is stopped at any moment finds a sound file.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Totals } from './figures.ts'
import type { Failure } from './report.ts'

export type SoakState = {
  readonly v: 1
  readonly nextSeed: number
  readonly totals: Totals
  readonly failures: readonly Failure[]
  /** Commits of the source that were soaked, oldest first. */
  readonly commits: readonly string[]
  readonly tookMs: number
}

/** Null: there is no such file yet. @throws Error for a file that is no state of a soak. */
export function readSoakState(file: string): SoakState | null {
  if (!existsSync(file)) return null
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const isState =
    typeof value === 'object' &&
    value !== null &&
    'v' in value &&
    value.v === 1 &&
    'nextSeed' in value
  if (!isState) throw new Error(`${file} is no state of a soak: name another file`)
  return value as unknown as SoakState
}

export function writeSoakState(file: string, state: SoakState): void {
  const beside = `${file}.new`
  writeFileSync(beside, `${JSON.stringify(state, null, 1)}\n`)
  renameSync(beside, file)
}
