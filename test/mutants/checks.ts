/**
 * Runs the model or the simulation in a mutated tree and reads which promise it found broken.
 *
 *   model        `--scope smallest`, then `--scope ci` where the first finds nothing
 *   simulation   seeds 1, 2, 3 ... as CI runs them, until one fails or the budget is used up
 *
 * A check that ends badly without naming a promise (a crash, a type that does not fit) catches nothing.
 */
import { spawn } from 'node:child_process'

export type Budget = {
  readonly modelScopes: readonly ('smallest' | 'ci')[]
  readonly seeds: number
  readonly timeoutMs: number
}

export type Finding = {
  /** The check failed. */
  readonly failed: boolean
  /** Promises named in what it printed, in that order. */
  readonly promises: readonly string[]
  /** The line that names the first, or the end of the output. */
  readonly line: string
  /** Which part of the budget found it. */
  readonly by: string
  readonly seconds: number
}

type Ran = { readonly status: number | null; readonly output: string }

/** Promises, liveness and the invariants of the machines, as the checks and the code name them. */
const NAMES = /\b(S(?:1[01]|[1-9])|L[1-7]|seat-I[1-7]|record-I[1-4]|stuck|recovery)\b/g

export async function runModel(tree: string, budget: Budget): Promise<Finding> {
  const began = performance.now()
  let by = ''
  for (const scope of budget.modelScopes) {
    by = `model, ${scope}`
    const words = ['test/model/main.ts', '--scope', scope]
    const { status, output } = await run(tree, words, budget.timeoutMs, () => false)
    if (status === 0) continue
    // The table above the violation speaks of configurations, not of promises.
    const violation = /^scope \w+: .*: broken: /m.test(output) ? output.indexOf('\n\n') : 0
    return findingOf(output.slice(violation), by, began)
  }
  return { failed: false, promises: [], line: '', by, seconds: secondsSince(began) }
}

/**
 * @param expected promises of which the first failing seed ends the run; others may fail besides
 * @param processes worker processes of the simulation
 */
export async function runSimulation(
  tree: string,
  budget: Budget,
  expected: readonly string[],
  processes: number,
): Promise<Finding> {
  const began = performance.now()
  const words = [
    ...['test/sim/sim-program.ts', '--from', '1', '--seeds', String(budget.seeds)],
    ...['--processes', String(processes)],
  ]
  // A failing seed is told at once; shrinking it is of no interest here.
  const isOver = (output: string) => ALL_SEEDS_DONE.test(output) || named(output) !== undefined
  const named = (output: string) =>
    failedSeeds(output).find(({ text }) => namesIn(text).some((name) => expected.includes(name)))
  const { status, output } = await run(tree, words, budget.timeoutMs, isOver)
  const failed = named(output) ?? failedSeeds(output)[0]
  if (failed !== undefined) return findingOf(failed.text, `seed ${failed.seed}`, began)
  if (status !== 0 && !ALL_SEEDS_DONE.test(output)) return findingOf(output, 'no seed', began)
  const by = `${budget.seeds} seeds`
  return { failed: false, promises: [], line: '', by, seconds: secondsSince(began) }
}

/** Begins what is printed once no seed is left. */
const ALL_SEEDS_DONE = /^seeds {12}/m

function failedSeeds(output: string): readonly { readonly seed: string; readonly text: string }[] {
  return [...output.matchAll(/^FAILED seed (\S+): .*\n/gm)].map((match) => ({
    seed: match[1] as string,
    text: match[0],
  }))
}

function namesIn(text: string): readonly string[] {
  return [...new Set([...text.matchAll(NAMES)].map((match) => match[1] as string))]
}

function findingOf(text: string, by: string, began: number): Finding {
  const promises = namesIn(text)
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const naming = lines.find((line) => promises[0] !== undefined && line.includes(promises[0]))
  const line = (naming ?? lines.slice(-12).join('\n')).trim()
  return { failed: true, promises, line, by, seconds: secondsSince(began) }
}

function secondsSince(began: number): number {
  return (performance.now() - began) / 1000
}

/** @param isOver asked of all output so far; true ends the program */
function run(
  tree: string,
  words: readonly string[],
  timeoutMs: number,
  isOver: (output: string) => boolean,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', ...words], {
      cwd: tree,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    const add = (chunk: Buffer) => {
      output += chunk.toString('utf8')
      if (isOver(output)) child.kill('SIGKILL')
    }
    child.stdout.on('data', add)
    child.stderr.on('data', add)
    child.on('error', reject)
    child.on('close', (status) => {
      clearTimeout(timer)
      resolve({ status, output })
    })
  })
}
