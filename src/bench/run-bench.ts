/**
 * Runs scenarios: servers, processes, then for each case round after round every contender in turn,
 * each round beginning with another one, and the rows at the end. A broken contender leaves a row that
 * says so, and the others go on; so does a scenario that cannot be set up.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { createBenchProcesses } from './bench-processes.ts'
import { type GivenServers, openBenchServers, versionsOf } from './bench-servers.ts'
import type {
  BenchCase,
  BenchContext,
  BenchReport,
  Comparison,
  Contender,
  Figures,
  ResultRow,
  Rival,
  Scenario,
  ScenarioName,
} from './bench-types.ts'
import { LEAN_LIMIT, rowsOf, TENURE } from './evaluate.ts'
import { SCENARIOS } from './scenarios.ts'
import { stopServeProcesses } from './serve-process.ts'

export type BenchOptions = {
  /** Empty: all. */
  readonly scenarios: readonly ScenarioName[]
  readonly quick: boolean
  readonly partitionsMax: number
  readonly seed: number
  readonly servers: GivenServers
  readonly rivals: readonly Rival[]
  /** Folder for a CPU profile of each process; null: none. */
  readonly profileFolder: string | null
  readonly progress: (text: string) => void
  readonly interrupted: AbortSignal
}

export async function runBench(options: BenchOptions): Promise<BenchReport> {
  const beganMs = performance.now()
  const startedAt = new Date().toISOString()
  const folder = mkdtempSync(join(tmpdir(), 'tenure-bench-'))
  // A server that runs as another user must get through it.
  chmodSync(folder, 0o711)
  const servers = await openBenchServers(options.servers, folder)
  const processes = createBenchProcesses(options.profileFolder)
  try {
    const { quick, partitionsMax, seed, progress } = options
    const runId = `bench-${seed.toString(36)}-${Date.now().toString(36)}`
    const context = { quick, partitionsMax, seed, runId, servers, processes, folder, progress }
    const rivals = await presentRivals(options.rivals)
    const results: ResultRow[] = []
    for (const scenario of chosen(options.scenarios)) {
      if (options.interrupted.aborted) break
      results.push(...(await runScenario(scenario, context, rivals, options.interrupted)))
    }
    return {
      machine: machine(),
      versions: { ...(await versionsOf(servers)), ...rivals.versions },
      ...{ seed, quick, startedAt, results },
      tookS: Math.round((performance.now() - beganMs) / 1000),
      rivals: rivals.told,
    }
  } finally {
    await stopServeProcesses()
    await processes.close()
    await servers.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

type Rivals = {
  readonly present: readonly Rival[]
  readonly versions: Readonly<Record<string, string>>
  readonly told: BenchReport['rivals']
}

async function presentRivals(all: readonly Rival[]): Promise<Rivals> {
  const present: Rival[] = []
  const versions: Record<string, string> = {}
  const told = []
  for (const rival of all) {
    const absent = await rival.isPresent()
    const { name, promises, doesNotPromise } = rival
    told.push({ name, absent, promises, doesNotPromise })
    if (absent !== null) continue
    present.push(rival)
    versions[name] = await rival.version()
  }
  return { present, versions, told }
}

function chosen(names: readonly ScenarioName[]): readonly Scenario[] {
  return names.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => names.includes(name))
}

async function runScenario(
  scenario: Scenario,
  context: BenchContext,
  rivals: Rivals,
  interrupted: AbortSignal,
): Promise<readonly ResultRow[]> {
  const rows: ResultRow[] = []
  try {
    for await (const benchCase of scenario.cases(context)) {
      try {
        rows.push(...(await runCase(scenario, benchCase, context, rivals, interrupted)))
      } finally {
        await benchCase.close?.()
      }
      if (interrupted.aborted) break
    }
  } catch (error: unknown) {
    // What could not be set up must not take the other scenarios' results along.
    rows.push(...brokenRows(scenario.name, 'all', new Map([[TENURE, describe(error)]])))
  }
  return rows
}

async function runCase(
  scenario: Scenario,
  benchCase: BenchCase,
  context: BenchContext,
  rivals: Rivals,
  interrupted: AbortSignal,
): Promise<readonly ResultRow[]> {
  const contenders = [
    ...benchCase.contenders,
    ...rivalContenders(scenario.name, benchCase, context, rivals.present),
  ]
  const measured = new Map<string, Figures[]>(contenders.map(({ name }) => [name, []]))
  const broken = new Map<string, string>()
  for (let round = 0; round < benchCase.rounds && !interrupted.aborted; round += 1) {
    for (const contender of turned(contenders, round)) {
      if (broken.has(contender.name) || interrupted.aborted) continue
      const { name } = contender
      const of = `round ${round + 1} of ${benchCase.rounds}`
      context.progress(`${scenario.name}, ${benchCase.name}: ${of}, ${name}`)
      try {
        measured.get(name)?.push(await contender.measure(round))
      } catch (error: unknown) {
        broken.set(name, describe(error))
      }
    }
  }
  const comparisons = [
    ...benchCase.comparisons,
    ...rivalComparisons(scenario, benchCase.name, rivals.present),
  ]
  const rows = rowsOf(scenario.name, benchCase, comparisons, measured)
  return [...rows, ...brokenRows(scenario.name, benchCase.name, broken)]
}

/** Whoever comes first meets another machine than who comes last: so they take turns. */
function turned<T>(all: readonly T[], round: number): readonly T[] {
  const from = round % Math.max(1, all.length)
  return [...all.slice(from), ...all.slice(0, from)]
}

function rivalContenders(
  scenario: ScenarioName,
  { rivalSettings }: BenchCase,
  context: BenchContext,
  rivals: readonly Rival[],
): readonly Contender[] {
  if (rivalSettings === null) return []
  const { runId, seed, quick, folder, servers } = context
  return rivals.map((rival) => ({
    name: rival.name,
    measure: (round) =>
      rival.run(scenario, {
        ...rivalSettings,
        ...{ round, runId, seed, quick, folder },
        etcdEndpoints: servers.etcd.endpoints,
        natsServers: servers.nats.servers,
      }),
  }))
}

function rivalComparisons(
  scenario: Scenario,
  caseName: string,
  rivals: readonly Rival[],
): readonly Comparison[] {
  return rivals.flatMap(({ name }) => {
    const wanted = scenario.rivalTargets?.[name]
    if (wanted === undefined) return []
    const bound = { contender: LEAN_LIMIT, why: 'the limit itself, beside that rival' }
    const target = wanted.judgedIn === caseName ? wanted.target : null
    return [{ metric: wanted.metric, target, statistic: 'median' as const, against: name, bound }]
  })
}

function brokenRows(
  scenario: ScenarioName,
  caseName: string,
  broken: ReadonlyMap<string, string>,
): readonly ResultRow[] {
  return [...broken].map(([contender, note]) => ({
    ...{ scenario, case: caseName, contender, metric: 'broken', value: 0, unit: '', note },
    ...{ against: null, ratio: null, target: null, bound: null, statistic: 'median' as const },
    met: contender === TENURE ? false : null,
    ...{ runs: 0, samples: 0, p50: 0, p99: 0, max: 0 },
  }))
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function machine(): BenchReport['machine'] {
  const all = cpus()
  return {
    processors: all.length,
    model: all[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
  }
}
