/** What the command line asks for. */
import { parseArgs } from 'node:util'

export type ChaosOptions = {
  readonly minutes: number
  readonly seed: number
  readonly reportFile: string | null
  /** Exit 0 where namespaces cannot be had. */
  readonly skipIfImpossible: boolean
  /** Leaves the logs behind also when the run passed. */
  readonly keep: boolean
}

export const USAGE =
  'npm run chaos -- [--minutes M] [--seed S] [--report FILE] [--keep] [--skip-if-impossible]'

const SEED_MAX = 2 ** 31

/** @throws Error naming what is wrong with the words. */
export function readOptions(words: readonly string[]): ChaosOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      minutes: { type: 'string', default: '3' },
      seed: { type: 'string' },
      report: { type: 'string' },
      keep: { type: 'boolean', default: false },
      'skip-if-impossible': { type: 'boolean', default: false },
    },
  })
  const minutes = Number(values.minutes)
  if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes} must be above 0`)
  const seed =
    values.seed === undefined ? Math.floor(Math.random() * SEED_MAX) : Number(values.seed)
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new Error(`--seed ${values.seed} must be a whole number`)
  }
  return {
    minutes,
    seed,
    reportFile: values.report ?? null,
    skipIfImpossible: values['skip-if-impossible'],
    keep: values.keep,
  }
}
