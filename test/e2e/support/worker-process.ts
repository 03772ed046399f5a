/** A worker process as the test sees it: what it reports, signals for it, and how it ended. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { TelemetryEvent } from '../../../src/ports/telemetry.ts'
import { eventually } from '../../support/eventually.ts'
import type { WorkerCommand, WorkerLine, WorkerProgramOptions } from './worker-lines.ts'

type LineOf<Type> = Extract<WorkerLine, { readonly type: Type }>
type EventOf<Type> = Extract<TelemetryEvent, { readonly type: Type }>

export type WorkerEnd = { readonly code: number | null; readonly signal: string | null }

export type WorkerProcess = {
  readonly member: string
  readonly pid: number
  readonly ended: Promise<WorkerEnd>
  /** Null while it runs. */
  end(): WorkerEnd | null
  /** Everything that it reported, in order. */
  readonly lines: readonly WorkerLine[]
  said<Type extends WorkerLine['type']>(type: Type): readonly LineOf<Type>[]
  events<Type extends TelemetryEvent['type']>(type: Type): readonly EventOf<Type>[]
  /** The session that it lives in, or lived in last. */
  session(): string
  signal(name: NodeJS.Signals): void
  send(command: WorkerCommand): void
  /** Its program is loaded. */
  started(): Promise<void>
  ready(): Promise<void>
  /** What it printed last, for messages of failed tests. */
  printed(): string
}

const START_TIMEOUT_MS = 90_000
const PRINTED_MAX = 4000

/** @param program see `bundleWorkerProgram` */
export function startWorkerProcess(program: string, options: WorkerProgramOptions): WorkerProcess {
  const child: ChildProcess = spawn(
    process.execPath,
    ['--enable-source-maps', program, JSON.stringify(options)],
    { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env: withoutSettings(process.env) },
  )
  const lines: WorkerLine[] = []
  let printed = ''
  let end: WorkerEnd | null = null
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      printed = (printed + String(chunk)).slice(-PRINTED_MAX)
    })
  }
  child.on('message', (line) => lines.push(line as WorkerLine))
  // A message to a process that has just ended fails; its end is what tests look at.
  child.on('error', () => {})
  const ended = new Promise<WorkerEnd>((resolve) => {
    child.once('close', (code, signal) => {
      end = { code, signal }
      resolve(end)
    })
  })
  const said: WorkerProcess['said'] = (type) =>
    lines.filter((line): line is LineOf<typeof type> => line.type === type)
  const events: WorkerProcess['events'] = (type) =>
    said('telemetry').flatMap(({ event }) =>
      event.type === type ? [event as EventOf<typeof type>] : [],
    )
  const untilSaid = async (type: WorkerLine['type']) => {
    const check = () => said(type).length > 0 || end !== null
    await eventually(check, { timeoutMs: START_TIMEOUT_MS, what: `${options.member} ${type}` })
    if (said(type).length === 0) {
      throw new Error(`${options.member} ended with ${JSON.stringify(end)}: ${printed}`)
    }
  }
  return {
    member: options.member,
    pid: child.pid ?? 0,
    ended,
    end: () => end,
    lines,
    said,
    events,
    session: () => events('session-opened').at(-1)?.session ?? '',
    signal: (name) => {
      if (end === null) child.kill(name)
    },
    send: (command) => child.send(command),
    started: () => untilSaid('started'),
    ready: () => untilSaid('ready'),
    printed: () => printed,
  }
}

/** Settings of the surroundings are no settings of the test. */
function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith('TENURE_')),
  )
}
