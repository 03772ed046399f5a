/**
 * `npm run sim`: runs seeds on worker processes, or one plan, and says what it found. A failing seed is
 * run again here, shrunk, and printed with its timeline and the command that repeats it.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { type BreachClass, classOf } from './breach.ts'
import { drawPlan } from './draw-plan.ts'
import { explainFailure } from './explain-failure.ts'
import { addRun, hoursOf, noTotals } from './figures.ts'
import { parseOptions, type SimOptions, USAGE } from './options.ts'
import type { Plan, WorldLength } from './plan.ts'
import { coverageTable, describeFailure, describeTotals, type Failure } from './report.ts'
import { runPlan } from './run-plan.ts'
import { runSeeds, type SeedOrder, type SeedOutcome } from './seed-pool.ts'
import { readSoakState, type SoakState, writeSoakState } from './soak-state.ts'

const EXIT_CODES: Readonly<Record<BreachClass, number>> = { safety: 10, liveness: 11, crash: 12 }
/** One seed in so many is run twice. */
const TWICE_EVERY = 100
/** Of a soak's worlds. */
const LONG_EVERY = 4
const EXPLAINED_MAX = 2
const SOAK_WRITE_EVERY_MS = 10_000

class Run {
  readonly totals
  readonly failures: Failure[]
  private readonly options: SimOptions
  private readonly began = performance.now()
  private readonly before: SoakState | null
  private nextSeed: number
  private given = 0
  private readonly open = new Set<number>()
  private writtenMs = performance.now()

  constructor(options: SimOptions) {
    this.options = options
    this.before = options.soakFile === null ? null : readSoakState(options.soakFile)
    this.totals = this.before?.totals ?? noTotals()
    this.failures = [...(this.before?.failures ?? [])]
    this.nextSeed = this.before?.nextSeed ?? options.from
  }

  get tookMs(): number {
    return (this.before?.tookMs ?? 0) + performance.now() - this.began
  }

  next(): SeedOrder | null {
    const { seeds, minutes } = this.options
    if (this.given >= seeds) return null
    if (minutes !== null && performance.now() - this.began >= minutes * 60_000) return null
    const number = this.nextSeed
    this.nextSeed += 1
    this.given += 1
    this.open.add(number)
    const length = lengthOf(number, this.options)
    return { seed: String(number), length, twice: number % TWICE_EVERY === 0 }
  }

  take(outcome: SeedOutcome): void {
    const { seed } = outcome
    this.open.delete(Number(seed))
    if ('died' in outcome) {
      const breach = { promise: 'crash', partition: null, atMs: 0, detail: outcome.died } as const
      this.fail({ seed, breach, replay: this.replay(seed) })
    } else {
      addRun(this.totals, outcome.figures, outcome.cpuMs)
      if (outcome.again !== null) this.totals.repeated += 1
      const isOther = outcome.again !== null && outcome.again !== outcome.traceHash
      const detail = `first ${outcome.traceHash}, then ${outcome.again}`
      const breach = isOther
        ? ({ promise: 'trace', partition: null, atMs: 0, detail } as const)
        : outcome.breach
      if (breach !== null) this.fail({ seed, breach, replay: this.replay(seed) })
    }
    this.progress()
    const isDue = performance.now() - this.writtenMs >= SOAK_WRITE_EVERY_MS
    if (isDue) this.write()
  }

  write(): void {
    const { soakFile } = this.options
    if (soakFile === null) return
    this.writtenMs = performance.now()
    const commits = [...new Set([...(this.before?.commits ?? []), commitOfSource()])]
    writeSoakState(soakFile, {
      ...{ v: 1, commits, tookMs: Math.round(this.tookMs) },
      // Seeds under way are run again by whoever goes on.
      nextSeed: Math.min(this.nextSeed, ...this.open),
      totals: this.totals,
      failures: this.failures,
    })
  }

  /** Told at once: a run may be long. */
  private fail(failure: Failure): void {
    this.failures.push(failure)
    for (const line of describeFailure(failure)) process.stderr.write(`${line}\n`)
  }

  private progress(): void {
    if (!process.stderr.isTTY) return
    const { seeds, simulatedMs } = this.totals
    const failed = this.failures.length === 0 ? '' : `, ${this.failures.length} FAILED`
    const hours = hoursOf(simulatedMs).toFixed(1)
    process.stderr.write(`\r${seeds} seeds, ${hours} simulated hours${failed}   `)
  }

  private replay(seed: string): string {
    const length = lengthOf(Number(seed), this.options)
    const flag = length === 'usual' ? '' : ` --${length}`
    return `npm run sim -- --seeds 1 --from ${seed}${flag}`
  }
}

async function main(): Promise<number> {
  const parsed = parseOptions(process.argv.slice(2))
  if (!parsed.ok) {
    console.error(`${parsed.error}\n\n${USAGE}`)
    return 2
  }
  const { options } = parsed
  const single = planOf(options)
  if (single !== null) return runOne(single, options)
  const run = new Run(options)
  await runSeeds(
    options.processes,
    () => run.next(),
    (outcome) => run.take(outcome),
  )
  run.write()
  if (process.stderr.isTTY) process.stderr.write('\n')
  const { totals, failures } = run
  for (const line of describeTotals(totals, run.tookMs)) console.log(line)
  if (options.coverage) for (const line of coverageTable(totals)) console.log(line)
  if (options.jsonFile !== null) {
    const report = { totals, failures, tookMs: Math.round(run.tookMs), commit: commitOfSource() }
    writeFileSync(options.jsonFile, `${JSON.stringify(report, null, 1)}\n`)
  }
  if (failures.length === 0) {
    console.log('every promise held')
    return 0
  }
  for (const [index, failure] of failures.entries()) {
    for (const line of describeFailure(failure)) console.log(line)
    if (index >= EXPLAINED_MAX) continue
    for (const line of await explainFailure(planOfSeed(failure.seed, options))) console.log(line)
  }
  return exitCode(failures)
}

async function runOne(plan: Plan, options: SimOptions): Promise<number> {
  const began = performance.now()
  const { breach, figures } = await runPlan(plan)
  const totals = noTotals()
  addRun(totals, figures, performance.now() - began)
  for (const line of describeTotals(totals, performance.now() - began)) console.log(line)
  if (breach === null) {
    console.log('every promise held')
    return 0
  }
  const isShrunk = options.keep !== null || options.planFile !== null
  for (const line of await explainFailure(plan, { isShrunk })) console.log(line)
  return EXIT_CODES[classOf(breach.promise)]
}

/** A single plan to run here; null: many seeds. */
function planOf(options: SimOptions): Plan | null {
  if (options.planFile !== null) return JSON.parse(readFileSync(options.planFile, 'utf8')) as Plan
  if (options.seeds !== 1 || options.soakFile !== null) return null
  const plan = planOfSeed(String(options.from), options)
  const { keep } = options
  if (keep === null) return plan
  return { ...plan, faults: plan.faults.filter((_, index) => keep.includes(index)) }
}

function planOfSeed(seed: string, options: SimOptions): Plan {
  return drawPlan(seed, lengthOf(Number(seed), options))
}

/** A soak has both: many worlds, and worlds that grow old. */
function lengthOf(seed: number, { length, soakFile }: SimOptions): WorldLength {
  if (length !== null) return length
  return soakFile !== null && seed % LONG_EVERY === 0 ? 'long' : 'usual'
}

/** The worst there is. */
function exitCode(failures: readonly Failure[]): number {
  const classes = new Set(failures.map(({ breach }) => classOf(breach.promise)))
  if (classes.has('safety')) return EXIT_CODES.safety
  return classes.has('crash') ? EXIT_CODES.crash : EXIT_CODES.liveness
}

function commitOfSource(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

process.exitCode = await main()
