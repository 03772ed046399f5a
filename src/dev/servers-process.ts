/**
 * A server as a child process that never outlives this one, not even when this one is killed.
 *
 *   stopped -> starting -> running -> stopped
 *
 * Between the two stands a shell that holds the read end of a pipe whose write end is ours. However
 * this process ends, the pipe closes, and the shell ends the server: SIGTERM, SIGCONT (a stopped
 * process would keep the SIGTERM pending for ever), and SIGKILL for one that still runs 5 s later. The
 * shell runs in a process group of its own, so Ctrl-C at the terminal reaches only this process, which
 * then ends its servers in the order that it wants. When the server ends first, so does the shell.
 *
 * Not promised: that anything is cleaned up when someone kills that shell with SIGKILL.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createTenureError } from '../core/tenure-error.ts'

/** A running server; the same handle serves across restarts. */
export type ServerProcess = {
  /** Process id of the server itself, 0 while it does not run. */
  pid(): number
  running(): boolean
  /** Null while it runs and after `stop` or `kill`; 128 + the signal's number when one ended it. */
  exitCode(): number | null
  /** Ends it in an orderly way; resolves when it is gone. */
  stop(): Promise<void>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** SIGSTOP. */
  pause(): void
  /** SIGCONT. */
  resume(): void
  /** Starts it on the same ports and data, stopping it first if it runs; resolves when ready. */
  restart(): Promise<void>
  /** File that everything the server prints is appended to. */
  readonly logFile: string
}

export type ServerCommand = {
  readonly name: string
  readonly program: string
  readonly args: readonly string[]
  readonly environment?: NodeJS.ProcessEnv
  /** Folder that it runs in [that of this process]. */
  readonly workingFolder?: string
  /** Ports on the loopback interface that it will listen on. */
  readonly ports: readonly number[]
  readonly logFile: string
  /** True once the server does its work, not merely listens. Must end within a second or so. */
  readonly isReady: () => Promise<boolean>
  readonly readyTimeoutMs?: number
}

const READY_TIMEOUT_MS = 20_000
const READY_POLL_MS = 20
/** A program that dislikes its flags says so first and explains all others after. */
const LOG_HEAD_LINES = 3
const LOG_TAIL_LINES = 6

const WATCHDOG = `
log=$1
shift
exec 3<&0 </dev/null
"$@" >>"$log" 2>&1 3<&- &
server=$!
echo "$server"
(
  cat <&3 >/dev/null
  kill -TERM "$server"
  kill -CONT "$server"
  tries=0
  while kill -0 "$server" && [ "$tries" -lt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  kill -KILL "$server"
) >/dev/null 2>&1 &
watchdog=$!
exec 3<&- >/dev/null 2>&1
wait "$server"
status=$?
kill -KILL "$watchdog"
exit "$status"
`

type Running = { readonly shell: ChildProcess; readonly pid: number; readonly gone: Promise<void> }

/**
 * Starts the server and waits until it is ready.
 *
 * @throws TenureError `timed-out`, or `conflict` when it ended first, with the end of its log. It no
 *   longer runs then.
 */
export async function startServerProcess(command: ServerCommand): Promise<ServerProcess> {
  mkdirSync(dirname(command.logFile), { recursive: true })
  let current: Running | null = await launch(command)

  const leave = async (end: (running: Running) => void) => {
    const running = current
    if (running === null) return
    end(running)
    await running.gone
    if (current === running) current = null
  }
  const signal = (name: NodeJS.Signals) => {
    if (current !== null && current.shell.exitCode === null) process.kill(current.pid, name)
  }
  const handle: ServerProcess = {
    logFile: command.logFile,
    pid: () => (handle.running() ? (current?.pid ?? 0) : 0),
    running: () => current !== null && current.shell.exitCode === null,
    exitCode: () => current?.shell.exitCode ?? null,
    stop: () => leave((running) => running.shell.stdin?.end()),
    kill: () => leave(() => signal('SIGKILL')),
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async restart() {
      await handle.stop()
      current = await launch(command)
    },
  }
  return handle
}

/** Ports of the loopback interface that were free a moment ago; another process may still take one. */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const listeners = Array.from({ length: count }, () => createServer())
  const ports: number[] = []
  for (const listener of listeners) {
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const address = listener.address()
    if (address !== null && typeof address === 'object') ports.push(address.port)
  }
  for (const listener of listeners) listener.close()
  return ports
}

/** Another server on the port would answer in the name of ours, which could not have it. */
async function refuseTakenPorts(command: ServerCommand): Promise<void> {
  for (const port of command.ports) {
    const listener = createServer()
    listener.listen(port, '127.0.0.1')
    try {
      await once(listener, 'listening')
    } catch (error) {
      throw createTenureError('conflict', `${command.name}: port ${port}: address already in use`, {
        cause: error,
        details: { port },
      })
    }
    listener.close()
    await once(listener, 'close')
  }
}

async function launch(command: ServerCommand): Promise<Running> {
  await refuseTakenPorts(command)
  const logStart = logSize(command.logFile)
  const shell = spawn(
    'sh',
    ['-c', WATCHDOG, 'sh', command.logFile, command.program, ...command.args],
    {
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
      env: command.environment ?? process.env,
      ...(command.workingFolder === undefined ? {} : { cwd: command.workingFolder }),
    },
  )
  // The shell may be gone when its pipe is closed.
  shell.stdin?.on('error', () => {})
  const gone = new Promise<void>((resolve) => {
    shell.once('close', () => {
      shell.stdin?.destroy()
      resolve()
    })
  })
  const failedToSpawn = once(shell, 'error').then(([error]) => Promise.reject(error))
  const pid = await Promise.race([readPid(shell), failedToSpawn])
  failedToSpawn.catch(() => {})
  const running = { shell, pid, gone }
  await waitUntilReady(command, running, logStart)
  return running
}

async function readPid(shell: ChildProcess): Promise<number> {
  let text = ''
  for await (const chunk of shell.stdout ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return Number(text)
}

async function waitUntilReady(
  command: ServerCommand,
  running: Running,
  logStart: number,
): Promise<void> {
  const timeoutMs = command.readyTimeoutMs ?? READY_TIMEOUT_MS
  const end = performance.now() + timeoutMs
  while (running.shell.exitCode === null) {
    if (await command.isReady()) return
    if (performance.now() > end) {
      running.shell.stdin?.end()
      await running.gone
      throw createTenureError(
        'timed-out',
        `${command.name} was not ready within ${timeoutMs} ms${logSince(command, logStart)}`,
      )
    }
    await delay(READY_POLL_MS)
  }
  await running.gone
  throw createTenureError(
    'conflict',
    `${command.name} ended at start${logSince(command, logStart)}`,
    { details: { logFile: command.logFile } },
  )
}

function logSize(logFile: string): number {
  return statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
}

function logSince(command: ServerCommand, start: number): string {
  const lines = readFileSync(command.logFile).subarray(start).toString('utf8').trimEnd().split('\n')
  const shown =
    lines.length <= LOG_HEAD_LINES + LOG_TAIL_LINES
      ? lines
      : [...lines.slice(0, LOG_HEAD_LINES), '...', ...lines.slice(-LOG_TAIL_LINES)]
  return `:\n${shown.join('\n')}`
}
