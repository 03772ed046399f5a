/**
 * An owner that is a process of its own: the parent's side of `fence-conformance-program.ts`.
 *
 *   starting -> ready -> (writing -> stopped -> resumed)* -> closed
 *
 * The child ends with its standard input, and is killed when this process exits. Not promised: that a child
 * which stands still at the moment when this process is killed by SIGKILL is ended too.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import type { SealOutcome } from '../fence/fence.ts'
import type { FenceOwner, WriteAttempt, WriteOutcome } from './fence-conformance-owner.ts'
import type { OwnerCommand, OwnerReport } from './fence-conformance-program.ts'

export type OwnerProgram = {
  /** Module that calls `serveFenceOwner`. */
  readonly program: string
  readonly args: readonly string[]
  /** Flags of node [those of this process]. */
  readonly nodeFlags?: readonly string[]
  readonly readyTimeoutMs?: number
}

const READY_TIMEOUT_MS = 30_000
/** A SIGCONT that comes before the SIGSTOP is lost, so it is sent until the child says that it goes on. */
const CONTINUE_EVERY_MS = 10

/** @throws TenureError `timed-out` or `conflict` when the program does not come up; it is gone then. */
export async function startFenceOwner(options: OwnerProgram): Promise<FenceOwner> {
  const flags = options.nodeFlags ?? process.execArgv.filter((flag) => !flag.startsWith('--test'))
  const child = spawn(process.execPath, [...flags, options.program, ...options.args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  // What could not be sent shows as the child's end.
  child.stdin.on('error', () => {})
  const killAtExit = () => child.kill('SIGKILL')
  process.once('exit', killAtExit)
  child.once('exit', () => process.removeListener('exit', killAtExit))
  const link = createLink(child)
  await untilReady(child, link, options.readyTimeoutMs ?? READY_TIMEOUT_MS)
  return {
    seal: (token) => seal(link, token),
    write: (request) => write(child, link, request),
    async close() {
      child.stdin.end()
      child.kill('SIGCONT')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}

type Listener = (report: OwnerReport) => void
type Link = {
  /** Sends a command; the listener gets each report about it, `failed` when the child ends. */
  send(command: OwnerCommand, listener: Listener): void
  listen(id: number, listener: Listener): void
  nextId(): number
}

function createLink(child: ChildProcess): Link {
  const listeners = new Map<number, Listener>()
  let lastId = 0
  let ended: string | null = null
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const report = JSON.parse(line) as OwnerReport
      const listener = listeners.get(report.id)
      if (report.is === 'sealed' || report.is === 'wrote' || report.is === 'failed') {
        listeners.delete(report.id)
      }
      listener?.(report)
    })
  }
  child.once('exit', (code, signal) => {
    ended = `the owner's process ended (${signal ?? code})`
    for (const [id, listener] of listeners) listener({ id, is: 'failed', message: ended })
    listeners.clear()
  })
  const listen = (id: number, listener: Listener) => {
    if (ended === null) listeners.set(id, listener)
    else listener({ id, is: 'failed', message: ended })
  }
  return {
    listen,
    send(command, listener) {
      listen(command.id, listener)
      if (ended === null) child.stdin?.write(`${JSON.stringify(command)}\n`)
    },
    nextId() {
      lastId += 1
      return lastId
    },
  }
}

function untilReady(child: ChildProcess, link: Link, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(createTenureError('timed-out', `an owner was not ready within ${timeoutMs} ms`))
    }, timeoutMs)
    link.listen(0, (report) => {
      clearTimeout(timer)
      if (report.is === 'ready') resolve()
      else if (report.is === 'failed') reject(createTenureError('conflict', report.message))
    })
  })
}

function seal(link: Link, token: Token): Promise<SealOutcome> {
  return new Promise((resolve, reject) => {
    link.send({ id: link.nextId(), do: 'seal', token }, (report) => {
      if (report.is === 'sealed') resolve(report.outcome)
      else if (report.is === 'failed') reject(createTenureError('conflict', report.message))
    })
  })
}

function write(
  child: ChildProcess,
  link: Link,
  request: Parameters<FenceOwner['write']>[0],
): WriteAttempt {
  const { token, number, stopAt, stopAfterMs } = request
  const attempt = createAttempt(child)
  link.send({ id: link.nextId(), do: 'write', token, number, stopAt }, (report) => {
    switch (report.is) {
      case 'calling':
        if (stopAt === 'during') attempt.stopAfter(stopAfterMs)
        return
      case 'stopping':
        attempt.stood()
        return
      case 'resumed':
        attempt.goesOn()
        return
      case 'wrote':
        attempt.ended(report.outcome)
        return
      case 'failed':
        attempt.ended({ type: 'failed', message: report.message })
        return
      case 'ready':
      case 'sealed':
        return
      default:
        report satisfies never
    }
  })
  return { stopped: attempt.stopped, resume: attempt.resume, outcome: attempt.outcome }
}

function createAttempt(child: ChildProcess) {
  const stopped = deferred<boolean>()
  const outcome = deferred<WriteOutcome>()
  let again: NodeJS.Timeout | undefined
  let stopping: NodeJS.Timeout | undefined
  let over = false
  const goesOn = () => clearInterval(again)
  return {
    stopped: stopped.promise,
    outcome: outcome.promise,
    stood: () => stopped.resolve(true),
    goesOn,
    stopAfter(afterMs: number) {
      const stop = () => {
        // A write that has ended is no longer resumed: its process would stand still for ever.
        if (over) return
        child.kill('SIGSTOP')
        stopped.resolve(true)
      }
      if (afterMs < 1) setImmediate(stop)
      else stopping = setTimeout(stop, afterMs)
    },
    ended(result: WriteOutcome) {
      over = true
      clearTimeout(stopping)
      goesOn()
      stopped.resolve(false)
      outcome.resolve(result)
    },
    resume() {
      child.kill('SIGCONT')
      if (!over) again = setInterval(() => child.kill('SIGCONT'), CONTINUE_EVERY_MS)
    },
  }
}

function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
