/**
 * What proves the promises and needs minutes: the long tests, the model, the simulation, chaos. Each step
 * is a command that stands by itself; all of them run, also after one that failed, and the last lines say
 * how each ended.
 *
 *   node test/proof.mjs [STEP …]
 */
import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const typescript = (file, ...words) => [process.execPath, '--import', 'tsx', file, ...words]
/** The machine itself stalled too much to judge liveness by; safety held. */
const CHAOS_NOT_JUDGED = 3
const STEPS = {
  tests: [process.execPath, 'test/run.mjs', '--proof'],
  model: typescript('test/model/main.ts', '--scope', 'ci'),
  sim: typescript('test/sim/sim-program.ts', '--seeds', '600'),
  chaos: typescript('test/chaos/chaos.ts', '--minutes', '3', '--seed', '1', '--skip-if-impossible'),
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(STEPS, name))
if (unknown.length > 0) {
  console.error(`no step ${unknown.join(', ')}; there are ${Object.keys(STEPS).join(', ')}`)
  process.exit(2)
}

const ends = []
for (const [name, command] of Object.entries(STEPS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  console.log(`\n== ${name}: ${command.slice(1).join(' ')}`)
  const beganAtMs = performance.now()
  const status = await run(command)
  ends.push({ name, status, seconds: Math.round((performance.now() - beganAtMs) / 1000) })
}
console.log('')
for (const { name, status, seconds } of ends) {
  console.log(`proof  ${name.padEnd(6)} ${wordOf(name, status)} in ${seconds} s`)
}
process.exitCode = ends.every(({ name, status }) => isGood(name, status)) ? 0 : 1

function wordOf(name, status) {
  if (status === 0) return 'passed'
  return isGood(name, status) ? 'NOT JUDGED (the machine stalled)' : `FAILED with ${status}`
}

function isGood(name, status) {
  return status === 0 || (name === 'chaos' && status === CHAOS_NOT_JUDGED)
}

function run([program, ...words]) {
  const child = spawn(program, words, { cwd: root, stdio: 'inherit' })
  return new Promise((resolve) => {
    child.on('close', (status, signal) => resolve(status ?? signal))
  })
}
