/** What `tenure bench` asks for, answered: rivals loaded, scenarios run, results told in three forms. */
import { pathToFileURL } from 'node:url'
import type { BenchAnswer, BenchRequest } from '../cli/commands.ts'
import { createTenureError } from '../core/tenure-error.ts'
import { type Rival, SCENARIO_NAMES, type ScenarioName } from './bench-types.ts'
import { markdownOf } from './report-markdown.ts'
import { picturesOf } from './report-svg.ts'
import { runBench } from './run-bench.ts'

/** @throws TenureError `invalid-argument` for a scenario that there is not, or a module without rivals. */
export async function answerBench(
  request: BenchRequest,
  interrupted: AbortSignal,
): Promise<BenchAnswer> {
  const { quick, partitionsMax, seed, profileFolder, progress, etcd, nats, rivalsModule } = request
  const report = await runBench({
    ...{ quick, partitionsMax, seed, profileFolder, progress, interrupted },
    scenarios: request.scenarios.map(scenarioName),
    servers: { etcd, nats },
    rivals: rivalsModule === null ? [] : await loadRivals(rivalsModule),
  })
  return { report, markdown: markdownOf(report), svg: picturesOf(report) }
}

function scenarioName(text: string): ScenarioName {
  const name = SCENARIO_NAMES.find((known) => known === text)
  if (name !== undefined) return name
  const all = SCENARIO_NAMES.join(', ')
  throw createTenureError('invalid-argument', `there is no scenario "${text}": take ${all}`)
}

async function loadRivals(path: string): Promise<readonly Rival[]> {
  const loaded: { readonly rivals?: readonly Rival[] } = await import(pathToFileURL(path).href)
  if (Array.isArray(loaded.rivals)) return loaded.rivals
  throw createTenureError('invalid-argument', `${path} exports no list \`rivals\``)
}
