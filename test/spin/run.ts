/**
 * Liveness by Spin: every configuration of a scope, two verifiers at a time, each property a run of its own.
 *
 *   node --import tsx test/spin/run.ts [--scope smallest|ci|full]
 *
 * Passed: each sound configuration was exhausted and has no cycle that breaks a property; each mutant has
 * one; and no step of a process stayed unreached in all of the scope's sound configurations together (a
 * step that cannot happen proves nothing). The last is asked of `ci` and `full`.
 */
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { Configuration, Property, Scope } from './configurations.ts'
import { configurationsOf, definesOf, SCOPES } from './configurations.ts'
import type { Report } from './pan.ts'
import { buildVerifier, removeVerifier, verify } from './pan.ts'

const AT_ONCE = 2
/** Far beyond what a run takes on a loaded machine. */
const TIMEOUT_MS: Readonly<Record<Scope, number>> = {
  smallest: 600_000,
  ci: 900_000,
  full: 3_600_000,
}

export type SpinResult = {
  readonly configuration: string
  readonly property: Property
  readonly passed: boolean
  readonly states: number
  readonly depth: number
  readonly seconds: number
}

export type SpinOutcome = {
  readonly passed: boolean
  readonly results: readonly SpinResult[]
  readonly seconds: number
}

/** @param print called with each line of the table as its run ends */
export async function runSpin(options: {
  readonly scope: Scope
  readonly print: (line: string) => void
}): Promise<SpinOutcome> {
  const { scope, print } = options
  const began = performance.now()
  const queue = [...configurationsOf(scope)]
  const results: SpinResult[] = []
  let unreached: ReadonlySet<number> | null = null
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const explored = await explore(next, TIMEOUT_MS[scope], print)
      results.push(...explored.results)
      if (next.broken === undefined) unreached = common(unreached, explored.unreached)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  let passed = results.every((result) => result.passed)
  const dead = scope === 'smallest' ? [] : [...(unreached ?? new Set<number>())]
  if (dead.length > 0) {
    passed = false
    print(`FAILED: lines of tenure.pml that no configuration reached: ${dead.join(', ')}`)
  }
  const seconds = (performance.now() - began) / 1000
  const states = results.reduce((sum, result) => sum + result.states, 0)
  print(`${results.length} runs, ${states} states, ${seconds.toFixed(1)} s`)
  return { passed, results, seconds }
}

async function explore(
  configuration: Configuration,
  timeoutMs: number,
  print: (line: string) => void,
): Promise<{ readonly results: readonly SpinResult[]; readonly unreached: ReadonlySet<number> }> {
  const isSound = configuration.broken === undefined
  const verifier = await buildVerifier(definesOf(configuration), isSound)
  const results: SpinResult[] = []
  let unreached: ReadonlySet<number> | null = null
  try {
    for (const property of configuration.properties) {
      const report = await verify(verifier, property, timeoutMs)
      unreached = common(unreached, report.unreached)
      results.push(resultOf(configuration, property, report))
      print(lineOf(configuration, property, report))
    }
  } finally {
    await removeVerifier(verifier)
  }
  return { results, unreached: unreached ?? new Set() }
}

function resultOf(configuration: Configuration, property: Property, report: Report): SpinResult {
  return {
    configuration: configuration.name,
    property,
    passed: report.hasCycle === (configuration.broken ?? false),
    states: report.states,
    depth: report.depth,
    seconds: report.seconds,
  }
}

function lineOf({ name, broken }: Configuration, property: Property, report: Report): string {
  const holds = report.hasCycle ? `broken for ever, ${property}` : `holds, ${property}`
  const verdict = report.hasCycle === (broken ?? false) ? 'ok' : 'FAILED'
  const figures = `${report.states} states, depth ${report.depth}, ${report.seconds.toFixed(1)} s`
  return `${verdict.padEnd(6)} ${name.padEnd(62)} ${holds.padEnd(27)} ${figures}`
}

function common(a: ReadonlySet<number> | null, b: ReadonlySet<number>): ReadonlySet<number> {
  return a === null ? b : new Set([...a].filter((line) => b.has(line)))
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { scope: { type: 'string', default: 'full' } } })
  const scope = SCOPES.find((known) => known === values.scope)
  if (scope === undefined) {
    console.error(`--scope ${values.scope}: one of ${SCOPES.join(', ')}`)
    return 2
  }
  const { passed } = await runSpin({ scope, print: (line) => console.log(line) })
  return passed ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = await main()
}
