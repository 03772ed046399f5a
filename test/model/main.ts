/**
 * `npm run model -- [--scope smallest|ci|full] [--only PART OF A NAME] [--json FILE]`
 *
 * Searches each configuration of the scope to its end, two processes at a time, and prints what it found;
 * from scope `ci` on then asks Spin for liveness under weak fairness (`test/spin`). Ends with 1 when a
 * promise is broken, naming it and the shortest trace; with 2 for a wrong call.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runSpin } from '../spin/run.ts'
import type { Configuration, Scope } from './configurations.ts'
import { CONFIGURATIONS, configurationsOf, SCOPES } from './configurations.ts'
import { headLine, lineOf, type Report, reportOf, violationText } from './report.ts'
import { search } from './search.ts'

const PROCESSES = 2
const PROGRESS_EVERY_MS = 30_000

if (process.send === undefined) await command()
else serve()

async function command(): Promise<void> {
  const { values } = parseArgs({
    options: {
      scope: { type: 'string', default: 'full' },
      only: { type: 'string', default: '' },
      json: { type: 'string' },
    },
  })
  const scope = SCOPES.find((one) => one === values.scope)
  const chosen = configurationsOf(scope ?? 'full').filter(({ name }) => name.includes(values.only))
  if (scope === undefined || chosen.length === 0) {
    console.error(`--scope must be one of ${SCOPES.join(', ')}; --only a part of a name in it`)
    process.exitCode = 2
    return
  }
  const beganAtMs = performance.now()
  console.log(headLine())
  const reports = scope === 'smallest' ? inTurn(chosen) : await besideEachOther(chosen)
  conclude(scope, reports, (performance.now() - beganAtMs) / 1000)
  if (scope !== 'smallest' && values.only === '') {
    console.log('\nliveness under weak fairness, by Spin')
    const { passed } = await runSpin({ scope, print: (line) => console.log(line) })
    if (!passed) process.exitCode = 1
  }
  if (values.json !== undefined) {
    writeFileSync(values.json, `${JSON.stringify({ scope, reports }, null, 2)}\n`)
  }
}

function conclude(scope: Scope, reports: readonly Report[], seconds: number): void {
  const states = reports.reduce((sum, report) => sum + report.states, 0)
  const omitted = reports.reduce((sum, report) => sum + report.expectedOmissions, 0)
  const broken = reports.filter(({ violation }) => violation !== null)
  for (const report of broken) console.log(`\n${violationText(report)}`)
  const verdict =
    broken.length === 0
      ? 'no promise broken, nothing stuck'
      : `broken: ${broken.map(({ violation }) => violation?.promise).join(', ')}`
  console.log(
    `\nscope ${scope}: ${reports.length} configurations, ${states} states in ${seconds.toFixed(0)} s,` +
      ` expected omissions ${omitted.toExponential(0)}: ${verdict}`,
  )
  process.exitCode = broken.length === 0 ? 0 : 1
}

/** Small ones: not worth a process each; the first violation is enough. */
function inTurn(configurations: readonly Configuration[]): readonly Report[] {
  const reports: Report[] = []
  for (const configuration of configurations) {
    const report = explore(configuration)
    console.log(lineOf(report))
    reports.push(report)
    if (report.violation !== null) break
  }
  return reports
}

function explore(configuration: Configuration): Report {
  const { settings, liveness, name } = configuration
  let toldAtMs = performance.now()
  const found = search(settings, {
    liveness,
    progress: (states, depth) => {
      if (performance.now() - toldAtMs < PROGRESS_EVERY_MS) return
      toldAtMs = performance.now()
      console.error(`  … ${name}: ${states} states, depth ${depth}`)
    },
  })
  return reportOf(configuration, found)
}

/** The largest first, so that the last ones end together. */
async function besideEachOther(chosen: readonly Configuration[]): Promise<readonly Report[]> {
  const queue = [...chosen].reverse()
  const reports: Report[] = []
  await Promise.all(
    Array.from({ length: Math.min(PROCESSES, queue.length) }, async () => {
      const child = fork(fileURLToPath(import.meta.url), { execArgv: process.execArgv })
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const report = await ask(child, next.name)
        console.log(lineOf(report))
        reports.push(report)
      }
      child.disconnect()
    }),
  )
  return reports
}

function ask(child: ChildProcess, name: string): Promise<Report> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) =>
      reject(new Error(`the search of "${name}" ended: ${code}`))
    child.once('exit', ended)
    child.once('message', (report) => {
      child.off('exit', ended)
      resolve(report as Report)
    })
    child.send(name)
  })
}

/** In a process of its own: searches what it is told to. */
function serve(): void {
  process.on('message', (name) => {
    const configuration = CONFIGURATIONS.find((one) => one.name === name)
    if (configuration === undefined) throw new Error(`there is no configuration "${name}"`)
    process.send?.(explore(configuration))
  })
}
