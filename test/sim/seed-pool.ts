/**
 * Worker processes that share the seeds of a run. One that dies, or does not end a seed in time, is
 * replaced; its seed counts as a crash.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Breach } from './breach.ts'
import type { WorldLength } from './plan.ts'
import type { RunFigures } from './run-plan.ts'

export type SeedOrder = {
  readonly seed: string
  readonly length: WorldLength
  /** Run it a second time and compare. */
  readonly twice: boolean
}

export type SeedReply = {
  readonly seed: string
  readonly breach: Breach | null
  readonly figures: RunFigures
  readonly cpuMs: number
  readonly traceHash: string
  /** The hash of the second run; null: there was none. */
  readonly again: string | null
}

export type SeedOutcome = SeedReply | { readonly seed: string; readonly died: string }

const PROGRAM = fileURLToPath(new URL('./seed-program.ts', import.meta.url))
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tenure-sim/', import.meta.url))
/** Far beyond what a seed takes on a loaded machine. */
const SEED_LIMIT_S = 300

/** @param next the next seed to run; null: no more */
export async function runSeeds(
  processes: number,
  next: () => SeedOrder | null,
  outcome: (outcome: SeedOutcome) => void,
): Promise<void> {
  const program = await bundleProgram()
  try {
    await Promise.all(Array.from({ length: processes }, () => serve(program, next, outcome)))
  } finally {
    rmSync(program, { force: true })
  }
}

/** One file of plain JavaScript: it runs faster than what a loader hands out, file by file. */
async function bundleProgram(): Promise<string> {
  mkdirSync(CACHE, { recursive: true })
  const outfile = join(CACHE, `seed-program-${process.pid}.mjs`)
  await build({
    ...{ entryPoints: [PROGRAM], outfile, bundle: true, packages: 'external' },
    ...{ platform: 'node', format: 'esm', target: 'node20', sourcemap: 'inline' },
    logLevel: 'warning',
  })
  return outfile
}

async function serve(
  program: string,
  next: () => SeedOrder | null,
  outcome: (outcome: SeedOutcome) => void,
): Promise<void> {
  let child: ChildProcess | null = null
  for (let order = next(); order !== null; order = next()) {
    child ??= fork(program, { execArgv: ['--enable-source-maps'] })
    const result = await ask(child, order)
    outcome(result)
    if ('died' in result) {
      child.kill('SIGKILL')
      child = null
    }
  }
  child?.disconnect()
}

function ask(child: ChildProcess, order: SeedOrder): Promise<SeedOutcome> {
  const { seed } = order
  return new Promise((resolve) => {
    const end = (result: SeedOutcome) => {
      clearInterval(timer)
      child.off('message', replied)
      child.off('exit', exited)
      resolve(result)
    }
    const replied = (reply: unknown) => end(reply as SeedReply)
    const exited = (code: number | null) => end({ seed, died: `its process ended with ${code}` })
    // Counted in ticks: a run that was suspended, or whose machine slept, has lost no time.
    let seconds = 0
    const timer = setInterval(() => {
      seconds += 1
      if (seconds >= SEED_LIMIT_S) end({ seed, died: `it did not end within ${SEED_LIMIT_S} s` })
    }, 1000)
    child.once('message', replied)
    child.once('exit', exited)
    child.send(order)
  })
}
