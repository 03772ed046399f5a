/**
 * One container as a plain process: its command and environment, its probes and hooks, its end by
 * SIGTERM within the time that the file grants. A child of this process that never outlives it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findServerProgram } from '../../src/dev/servers.ts'
import { type ServerProcess, startServerProcess } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import type { CleanUp } from '../support/servers.ts'
import { type Substitutions, substitute } from './substitutions.ts'

export type Probe =
  | { readonly type: 'exec'; readonly words: readonly string[]; readonly timeoutMs: number }
  | {
      readonly type: 'http'
      readonly port: number
      readonly path: string
      readonly timeoutMs: number
    }

/** As the file has it. */
export type ContainerSpec = {
  readonly name: string
  readonly words: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Passes once the container has started, within the time. */
  readonly startup: Probe
  readonly startupMs: number
  readonly preStop: readonly string[] | null
  readonly stopGraceMs: number
}

export type Placement = {
  readonly substitutions: Substitutions
  readonly workingFolder: string
  readonly logFile: string
  readonly ports: readonly number[]
}

export type LogLine = Readonly<Record<string, unknown>>

export type Container = {
  readonly spec: ContainerSpec
  readonly pid: number
  readonly probe: (probe: Probe) => Promise<boolean>
  /** Runs a command inside, as a hook does; resolves with its exit code. */
  readonly run: (words: readonly string[]) => Promise<number>
  /** preStop, SIGTERM, and the exit code. Rejects when it still runs after the grace. */
  readonly terminate: () => Promise<number>
  /** SIGTERM alone. */
  readonly signal: () => void
  readonly exitCode: () => number | null
  /** What the process wrote as JSON, line by line. */
  readonly log: () => readonly LogLine[]
}

/** A probe's period is for machines that must not be bothered; here one is asked that often. */
export const PROBE_EVERY_MS = 150

/** Resolves when the startup probe passed. Ended with the test, if it still runs. */
export async function startContainer(
  cleanUp: CleanUp,
  spec: ContainerSpec,
  placement: Placement,
): Promise<Container> {
  const { substitutions, workingFolder, logFile, ports } = placement
  const logStart = existsSync(logFile) ? readFileSync(logFile).length : 0
  const inside = (words: readonly string[]) => words.map((word) => substitute(word, substitutions))
  const environment = {
    ...Object.fromEntries(
      Object.entries(spec.environment).map(([name, value]) => [
        name,
        substitute(value, substitutions),
      ]),
    ),
    PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
  }
  const run = (words: readonly string[], timeoutMs = spec.stopGraceMs) =>
    runInside(inside(words), { environment, workingFolder, timeoutMs })
  const probe = async (one: Probe) => {
    if (one.type === 'http') {
      const port = substitutions.words.get(String(one.port)) ?? String(one.port)
      return isHealthy(`http://127.0.0.1:${port}${one.path}`, one.timeoutMs)
    }
    const words = inside(one.words)
    if (words[0] === 'wget') return isHealthy(words.at(-1) ?? '', one.timeoutMs)
    return (await run(one.words, one.timeoutMs)) === 0
  }
  const [program = '', ...args] = inside(spec.words)
  const server: ServerProcess = await startServerProcess({
    name: spec.name,
    program: programHere(program),
    args,
    environment,
    workingFolder,
    ports,
    logFile,
    readyTimeoutMs: spec.startupMs,
    isReady: throttled(() => probe(spec.startup)),
  })
  cleanUp.after(() => server.stop())
  const pid = server.pid()
  const signal = () => void process.kill(pid, 'SIGTERM')
  return {
    spec,
    pid,
    probe,
    run,
    signal,
    exitCode: () => server.exitCode(),
    async terminate() {
      const end = performance.now() + spec.stopGraceMs
      if (spec.preStop !== null) await run(spec.preStop)
      signal()
      const ended = await eventually(
        () => (server.exitCode() === null ? null : { exitCode: server.exitCode() ?? -1 }),
        { timeoutMs: end - performance.now(), what: `${spec.name} ended within its grace` },
      )
      return ended.exitCode
    },
    log: () => jsonLines(readFileSync(logFile).subarray(logStart).toString('utf8')),
  }
}

function programHere(program: string): string {
  if (program === 'etcd' || program === 'nats-server') return findServerProgram(program)
  if (program === 'node') return process.execPath
  return program
}

/** Asks at most every `PROBE_EVERY_MS`; between, the answer is no. */
function throttled(ask: () => Promise<boolean>): () => Promise<boolean> {
  let nextMs = 0
  return async () => {
    if (performance.now() < nextMs) return false
    const answer = await ask()
    nextMs = performance.now() + PROBE_EVERY_MS
    return answer
  }
}

async function isHealthy(url: string, timeoutMs: number): Promise<boolean> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) }).catch(() => null)
  await reply?.body?.cancel()
  return reply?.ok === true
}

async function runInside(
  words: readonly string[],
  options: {
    readonly environment: NodeJS.ProcessEnv
    readonly workingFolder: string
    readonly timeoutMs: number
  },
): Promise<number> {
  const [program = '', ...args] = words
  const child = spawn(program, args, {
    cwd: options.workingFolder,
    env: options.environment,
    stdio: 'ignore',
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
  })
  const [exitCode] = (await once(child, 'exit')) as [number | null]
  return exitCode ?? -1
}

function jsonLines(text: string): readonly LogLine[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogLine)
}

/** A log file for each container under the folder. */
export function logFileIn(folder: string, name: string): string {
  return join(folder, `${name}.log`)
}
