/**
 * The processes that a benchmark's members live in: one each, as users run them. Threads would start
 * faster, but only a process can be killed and stopped (failover), and one event loop for all members
 * would hide what they wait for. The limit runs in the same processes, so it has the same shape and
 * pays for the same scheduling. Processes are kept from round to round: none is measured cold.
 *
 * They end with this process: on purpose at `close`, by its exit, or when their channel breaks. Not
 * promised: one that is stopped (SIGSTOP) when this process is killed stays until somebody ends it.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { FromProcess, Held, ToProcess } from './process-messages.ts'
import type { ProcessCalls } from './process-program.ts'

/** The argument and the answer of a call. */
type ArgumentOf<Name extends keyof ProcessCalls> = Parameters<ProcessCalls[Name]>[0]
type ValueOf<Name extends keyof ProcessCalls> = Awaited<ReturnType<ProcessCalls[Name]>>

export type BenchProcess = {
  readonly pid: number
  /** As it last said. */
  held(): Held
  call<Name extends keyof ProcessCalls>(
    name: Name,
    argument: ArgumentOf<Name>,
  ): Promise<ValueOf<Name>>
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  readonly gone: Promise<void>
}

export type BenchProcesses = {
  /** That many processes, those running first. */
  take(count: number): Promise<readonly BenchProcess[]>
  /** Resolves when the condition holds; looked at whenever a process says something. */
  until(what: string, holds: () => boolean, timeoutMs: number): Promise<void>
  close(): Promise<void>
}

const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
const PROGRAM = fileURLToPath(new URL(`./process-program${EXTENSION}`, import.meta.url))

/** @param profileFolder where each process leaves its CPU profile; null: none is made */
export function createBenchProcesses(profileFolder: string | null): BenchProcesses {
  const running = new Set<BenchProcess & { end(): Promise<void> }>()
  const waiting = new Set<() => void>()
  const heard = () => {
    for (const look of waiting) look()
  }
  const endAll = () => {
    for (const one of running) one.signal('SIGKILL')
  }
  process.once('exit', endAll)

  const start = (): void => {
    const one = startProcess(profileFolder, heard)
    running.add(one)
    void one.gone.then(() => {
      running.delete(one)
      heard()
    })
  }
  return {
    async take(count) {
      while (running.size < count) start()
      const taken = [...running].slice(0, count)
      await Promise.all(taken.map((one) => one.call('ping', null)))
      return taken
    },
    until(what, holds, timeoutMs) {
      return new Promise((resolve, reject) => {
        const end = (error?: Error) => {
          waiting.delete(look)
          clearTimeout(timer)
          if (error === undefined) resolve()
          else reject(error)
        }
        const look = () => {
          if (holds()) end()
        }
        const late = () => {
          const served = [...running].map((one) => one.held().serving).join(', ')
          end(new Error(`${what}: not within ${timeoutMs} ms; served by each process: ${served}`))
        }
        const timer = setTimeout(late, timeoutMs)
        waiting.add(look)
        look()
      })
    },
    async close() {
      process.removeListener('exit', endAll)
      await Promise.all([...running].map((one) => one.end()))
    },
  }
}

function startProcess(
  profileFolder: string | null,
  heard: () => void,
): BenchProcess & { end(): Promise<void> } {
  const profiling = profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]
  const child: ChildProcess = fork(PROGRAM, [], {
    serialization: 'advanced',
    // Memory is measured after a collection. From the sources, a process needs the loader that this one has.
    execArgv: ['--expose-gc', ...profiling, ...(EXTENSION === '.ts' ? process.execArgv : [])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let held: Held = { serving: 0, changedAtMs: 0 }
  let nextId = 0
  const calls = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  child.on('message', (message: FromProcess) => {
    if (message.type === 'held') {
      held = message.held
      heard()
      return
    }
    const call = calls.get(message.id)
    calls.delete(message.id)
    if (message.type === 'answer') call?.resolve(message.value)
    else call?.reject(new Error(message.detail))
  })
  // A process that was killed breaks the channel before its end is known.
  child.on('error', () => {})
  const gone = once(child, 'exit').then(() => {
    for (const call of calls.values()) call.reject(new Error('the process has ended'))
    calls.clear()
  })
  const one = {
    pid: child.pid ?? 0,
    gone,
    held: () => held,
    call: <Name extends keyof ProcessCalls>(name: Name, argument: ArgumentOf<Name>) =>
      new Promise<ValueOf<Name>>((resolve, reject) => {
        const id = nextId++
        calls.set(id, { resolve: resolve as (value: unknown) => void, reject })
        child.send({ id, name, argument } satisfies ToProcess, (error) => {
          if (error !== null) reject(error)
        })
      }),
    signal(name: NodeJS.Signals) {
      if (child.exitCode === null && child.signalCode === null) child.kill(name)
    },
    async end() {
      one.signal('SIGCONT')
      if (child.connected) child.disconnect()
      await gone
    },
  }
  return one
}
