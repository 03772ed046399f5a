/**
 * `npm run mutants [-- [--quick] [NAME ...]]`: takes one safeguard after the other out of the source and
 * requires that the model or the simulation says which promise that breaks. The source as it is must pass
 * the same checks first. Ends with 1 when a mutant survives, or is caught without being named.
 */
import { parseArgs } from 'node:util'
import type { Budget, Finding } from './checks.ts'
import { runModel, runSimulation } from './checks.ts'
import type { Mutant } from './mutant.ts'
import { MUTANTS } from './mutants.ts'
import { createMutatedTree, removeTree } from './mutated-tree.ts'

const AT_ONCE = 2
/** What CI spends on the sound source; a mutant gets no more. */
const WHOLE: Budget = { modelScopes: ['smallest', 'ci'], seeds: 600, timeoutMs: 900_000 }
const QUICK: Budget = { modelScopes: ['smallest'], seeds: 200, timeoutMs: 600_000 }
/** `npm run model` and `npm run sim` show more of the sound source; this guards against broken checks. */
const BASELINE_SEEDS = 20

type Verdict = {
  readonly mutant: Mutant
  readonly caught: boolean
  readonly promise: string
  readonly finding: Finding
}

async function judge(mutant: Mutant, budget: Budget): Promise<Verdict> {
  const finding = await inTree(mutant, (tree) =>
    mutant.caughtBy === 'model'
      ? runModel(tree, budget)
      : runSimulation(tree, budget, mutant.promises, 1),
  )
  const promise = finding.promises.find((name) => mutant.promises.includes(name))
  return { mutant, caught: promise !== undefined, promise: promise ?? '-', finding }
}

async function inTree<Result>(
  mutant: Pick<Mutant, 'name' | 'edits'>,
  use: (tree: string) => Promise<Result>,
): Promise<Result> {
  const tree = await createMutatedTree(mutant.name, mutant.edits)
  try {
    return await use(tree)
  } finally {
    await removeTree(tree)
  }
}

/** The source as it is. */
async function baseline(chosen: readonly Mutant[], budget: Budget): Promise<boolean> {
  const needs = new Set(chosen.map(({ caughtBy }) => caughtBy))
  const sound = { name: 'none', edits: [] }
  const findings = await inTree(sound, (tree) =>
    Promise.all([
      needs.has('model') ? runModel(tree, { ...budget, modelScopes: ['smallest'] }) : null,
      needs.has('simulation')
        ? runSimulation(tree, { ...budget, seeds: BASELINE_SEEDS }, [], 1)
        : null,
    ]),
  )
  const failed = findings.filter((finding) => finding?.failed === true)
  for (const finding of failed) {
    console.error(`the source without any mutant fails (${finding?.by}):\n${finding?.line}`)
  }
  return failed.length === 0
}

function describe({ mutant, caught, promise, finding }: Verdict): string {
  const head = `${caught ? 'caught' : 'LIVES '} ${mutant.name.padEnd(34)} ${promise.padEnd(8)}`
  return `${head} ${finding.by.padEnd(18)} ${finding.seconds.toFixed(1).padStart(7)} s`
}

function explain({ mutant, finding }: Verdict): string {
  const expected = `expected ${mutant.promises.join(' or ')} from the ${mutant.caughtBy}`
  if (!finding.failed) return `${mutant.name} (${mutant.what}) was not noticed: ${expected}`
  return `${mutant.name} (${mutant.what}) was caught for another reason: ${expected}, found:\n${finding.line}`
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { quick: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const unknown = positionals.filter((name) => !MUTANTS.some((mutant) => mutant.name === name))
  if (unknown.length > 0) {
    const names = MUTANTS.map(({ name }) => name).join('\n  ')
    console.error(`no mutant is called ${unknown.join(', ')}; there are:\n  ${names}`)
    return 2
  }
  const chosen = MUTANTS.filter(
    ({ name }) => positionals.length === 0 || positionals.includes(name),
  )
  const budget = values.quick ? QUICK : WHOLE
  const began = performance.now()
  if (!(await baseline(chosen, budget))) return 1
  const queue = [...chosen]
  const survivors: Verdict[] = []
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const verdict = await judge(next, budget)
      console.log(describe(verdict))
      if (!verdict.caught) survivors.push(verdict)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  console.log(
    `${chosen.length - survivors.length} of ${chosen.length} mutants caught in ${seconds} s`,
  )
  for (const survivor of survivors) console.error(`\n${explain(survivor)}`)
  return survivors.length === 0 ? 0 : 1
}

process.exitCode = await main()
