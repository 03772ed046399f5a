/**
 * Builds a verifier out of the model (`spin -a`, then the C compiler) in a folder of its own, runs it, and
 * reads its report. A run counts only when it was exhausted: no depth cut off, no memory or time run out.
 * Whatever else the verifier says is an error that names the remedy.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MODEL = join(import.meta.dirname, 'tenure.pml')
const INLINE_LINES = inlineLines(readFileSync(MODEL, 'utf8'))
const MEMORY_MIB = 3000
const DEPTH_MAX = 1_000_000
const BUILD_MS = 600_000

export type Report = {
  /** States by themselves, and with the copies that weak fairness needs. */
  readonly states: number
  readonly visited: number
  readonly transitions: number
  readonly depth: number
  readonly seconds: number
  /** A cycle in which the property stays broken for ever. */
  readonly hasCycle: boolean
  /** Lines of the model's processes that the run did not reach. */
  readonly unreached: ReadonlySet<number>
}

export type Verifier = { readonly folder: string; readonly program: string }

/** @param optimize worth its compile time where many states are to come */
export async function buildVerifier(
  defines: readonly string[],
  optimize: boolean,
): Promise<Verifier> {
  const folder = await mkdtemp(join(tmpdir(), 'tenure-spin-'))
  const macros = defines.map((define) => `-D${define}`)
  await must(folder, 'spin', ['-a', ...macros, MODEL], 'the Debian package spin')
  const level = optimize ? '-O1' : '-O0'
  // Weak fairness over more than six processes; no reduction, since every step touches globals.
  const flags = [level, '-w', '-DNOREDUCE', '-DNFAIR=3', `-DMEMLIM=${MEMORY_MIB}`]
  await must(folder, 'gcc', [...flags, '-o', 'pan', 'pan.c'], 'the Debian packages gcc, libc6-dev')
  return { folder, program: join(folder, 'pan') }
}

export async function removeVerifier({ folder }: Verifier): Promise<void> {
  await rm(folder, { recursive: true, force: true })
}

/** @throws Error when the run was not exhausted, or broke anything but the property. */
export async function verify(
  { folder, program }: Verifier,
  property: string,
  timeoutMs: number,
): Promise<Report> {
  const flags = ['-a', '-f', '-N', property, `-m${DEPTH_MAX}`, '-w24']
  const { output, timedOut } = await run(folder, program, flags, timeoutMs)
  if (timedOut) throw new Error(`${property}: not exhausted within ${timeoutMs / 1000} s`)
  return readReport(output, property)
}

/** The verifier's report as values. */
export function readReport(output: string, property: string): Report {
  const depth = /depth reached (\d+), errors: (\d+)/.exec(output)
  if (depth === null) throw new Error(`${property}: the verifier gave no report:\n${output}`)
  if (/max search depth too small/.test(output)) {
    throw new Error(`${property}: not exhausted, deeper than ${DEPTH_MAX} steps`)
  }
  if (/out of memory|memory exhausted|reached -DMEMLIM/i.test(output)) {
    throw new Error(`${property}: not exhausted within ${MEMORY_MIB} MiB`)
  }
  const hasCycle = /acceptance cycle \(at depth/.test(output)
  const errors = Number(depth[2])
  if (errors > 0 && !hasCycle) {
    throw new Error(`${property}: the model itself is wrong:\n${output.slice(0, 2000)}`)
  }
  const stored = /^\s*([\d.e+]+) states, stored(?: \(([\d.e+]+) visited\))?/m.exec(output)
  return {
    states: Number(stored?.[1] ?? 0),
    visited: Number(stored?.[2] ?? stored?.[1] ?? 0),
    transitions: Number(/^\s*([\d.e+]+) transitions/m.exec(output)?.[1] ?? 0),
    depth: Number(depth[1]),
    seconds: Number(/elapsed time ([\d.e+-]+) seconds/.exec(output)?.[1] ?? 0),
    hasCycle,
    unreached: unreachedLines(output),
  }
}

/** Not those of an inline: it has a copy in each step that uses it, and the step is looked at itself. */
function unreachedLines(output: string): ReadonlySet<number> {
  const lines = new Set<number>()
  for (const match of output.matchAll(/tenure\.pml:(\d+), state \d+, "(?!-end-)/g)) {
    const line = Number(match[1])
    if (!INLINE_LINES.has(line)) lines.add(line)
  }
  return lines
}

function inlineLines(model: string): ReadonlySet<number> {
  const inside = new Set<number>()
  let isInside = false
  for (const [index, text] of model.split('\n').entries()) {
    if (text.startsWith('inline ')) isInside = true
    if (isInside) inside.add(index + 1)
    if (text === '}') isInside = false
  }
  return inside
}

async function must(folder: string, program: string, words: readonly string[], from: string) {
  const ran = await run(folder, program, words, BUILD_MS).catch((error: unknown) => {
    throw new Error(`${program} cannot be started: install ${from} (TENURE_SETUP=test)`, {
      cause: error,
    })
  })
  if (ran.timedOut) throw new Error(`${program}: not done within ${BUILD_MS / 1000} s`)
  if (ran.status !== 0) throw new Error(`${program} ${words.join(' ')} failed:\n${ran.output}`)
}

type Ran = { readonly output: string; readonly status: number | null; readonly timedOut: boolean }

function run(
  folder: string,
  program: string,
  words: readonly string[],
  timeoutMs: number,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      child.kill('SIGKILL')
    }, timeoutMs)
    const add = (chunk: Buffer) => {
      output += chunk.toString('utf8')
    }
    child.stdout.on('data', add)
    child.stderr.on('data', add)
    child.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.on('close', (status) => {
      clearTimeout(timer)
      resolve({ output, status, timedOut })
    })
  })
}
