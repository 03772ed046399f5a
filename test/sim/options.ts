/** The command line of the simulation. */
import { parseArgs } from 'node:util'
import type { WorldLength } from './plan.ts'

export type SimOptions = {
  readonly seeds: number
  readonly from: number
  /** Stop taking seeds after so many minutes; null: when all are done. */
  readonly minutes: number | null
  readonly processes: number
  /** How long faults go on in each world; null: as each seed has it (see `Run.next`). */
  readonly length: WorldLength | null
  /** Numbers of the plan's faults to keep, for a shrunk plan; null: all. */
  readonly keep: readonly number[] | null
  readonly planFile: string | null
  readonly jsonFile: string | null
  readonly soakFile: string | null
  readonly coverage: boolean
}

export const USAGE = `npm run sim -- [options]

  --seeds N         how many seeds to run (default 100; with --soak: until --minutes are over)
  --from K          the first seed (default 1)
  --minutes M       start no seed after M minutes
  --processes N     worker processes (default 2)
  --short           faults go on for a minute in each world, not for 2 to 5
  --long            faults go on for an hour in each world, further apart
  --keep 1,4,9      of one seed, only these of its faults
  --plan FILE       run the plan in this file instead of seeds
  --soak FILE       go on from this file, and write to it what was done; each fourth world is long
  --json FILE       write the figures and failures there
  --coverage        print the whole table of faults and phases

exit codes: 0 all promises held, 2 usage, 10 safety broken, 11 liveness broken, 12 crash`

export type Parsed =
  | { readonly ok: true; readonly options: SimOptions }
  | { readonly ok: false; readonly error: string }

export function parseOptions(args: readonly string[]): Parsed {
  try {
    return { ok: true, options: optionsOf(args) }
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) }
  }
}

function optionsOf(args: readonly string[]): SimOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      from: { type: 'string' },
      minutes: { type: 'string' },
      processes: { type: 'string' },
      short: { type: 'boolean' },
      long: { type: 'boolean' },
      keep: { type: 'string' },
      plan: { type: 'string' },
      soak: { type: 'string' },
      json: { type: 'string' },
      coverage: { type: 'boolean' },
    },
    allowPositionals: false,
  })
  const soakFile = values.soak ?? null
  if (soakFile !== null && values.from !== undefined) {
    throw new Error('--soak goes on where its file ends: leave --from out')
  }
  if (soakFile !== null && values.seeds === undefined && values.minutes === undefined) {
    throw new Error('--soak needs --minutes or --seeds: how long shall it go on?')
  }
  const seeds = count('--seeds', values.seeds, soakFile === null ? 100 : Number.MAX_SAFE_INTEGER)
  const keep = values.keep === undefined ? null : numbers(values.keep)
  if (keep !== null && seeds !== 1) throw new Error('--keep is of one seed: add --seeds 1')
  return {
    seeds,
    from: count('--from', values.from, 1),
    minutes: values.minutes === undefined ? null : amount('--minutes', values.minutes),
    processes: count('--processes', values.processes, 2),
    length: lengthOf(values),
    keep,
    planFile: values.plan ?? null,
    jsonFile: values.json ?? null,
    soakFile,
    coverage: values.coverage === true,
  }
}

function lengthOf({ short, long }: { short?: boolean; long?: boolean }): WorldLength | null {
  if (short === true && long === true) throw new Error('--short or --long, not both')
  if (short === true) return 'short'
  return long === true ? 'long' : null
}

function count(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new Error(`${name} must be a whole number from 1 on, not "${text}"`)
}

function amount(name: string, text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new Error(`${name} must be a number above 0, not "${text}"`)
}

function numbers(text: string): readonly number[] {
  const values = text === '' ? [] : text.split(',').map(Number)
  if (values.every((value) => Number.isSafeInteger(value) && value >= 0)) return values
  throw new Error(`--keep must be numbers of faults such as 1,4,9, not "${text}"`)
}
