/**
 * A worker as its author would write it, as a process: `worker-program.ts <options as JSON>`. Each
 * partition counts upwards at the fenced resource, from the checkpoint that the resource keeps, and
 * looks at no signal before a write: a late write is to be refused by the resource alone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { startWorker } from '../../../src/composition/start-worker.ts'
import { isTenureError } from '../../../src/core/tenure-error.ts'
import type { Position, Token } from '../../../src/core/token.ts'
import { machineMs } from '../../../src/dev/machine-time.ts'
import type { Partition, Worker } from '../../../src/runtime/worker-options.ts'
import type { WorkerCommand, WorkerLine, WorkerProgramOptions } from './worker-lines.ts'

const RETRY_MS = 100

type Unstamped<T> = T extends unknown ? Omit<T, 'atMs'> : never
type Cursor = { next: number }

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerProgramOptions

function say(line: Unstamped<WorkerLine>): void {
  if (process.connected) process.send?.({ ...line, atMs: machineMs() })
}

// Never outlives the test.
const leave = () => process.exit(3)
process.on('disconnect', leave)
const mayGo = new Promise<void>((resolve) => {
  if (!options.waitsForGo) resolve()
  process.on('message', ({ type }: WorkerCommand) => {
    if (type === 'go') resolve()
    else setTimeout(throwIt, 0)
  })
})

say({ type: 'started' })
await mayGo
const worker = await start()
try {
  await worker.ready
  say({ type: 'ready' })
  await worker.done
} catch (error: unknown) {
  tellFailure(error)
  throw error
} finally {
  process.off('disconnect', leave)
  process.disconnect()
}

function throwIt(): never {
  throw new Error('thrown where nobody catches')
}

async function start(): Promise<Worker> {
  const { group, member, settings, etcdEndpoints, natsServers } = options
  try {
    const started = await startWorker<Cursor>({
      ...{ group, member, address: `test://${member}` },
      ...(settings === undefined ? {} : { settings }),
      etcd: { endpoints: etcdEndpoints },
      nats: { servers: natsServers },
      telemetry: { record: (event) => say({ type: 'telemetry', event }) },
      acquire: async (p) => {
        const { checkpoint } = (await ask('seal', p, { token: p.token })) as { checkpoint: number }
        say({ type: 'acquired', token: p.token })
        return { next: checkpoint + 1 }
      },
      run: count,
      release: (p) => say({ type: 'released', token: p.token }),
      lost: (p, _cursor, cause) => say({ type: 'lost', token: p.token, cause }),
    })
    return started
  } catch (error: unknown) {
    tellFailure(error)
    throw error
  }
}

async function count(p: Partition, cursor: Cursor): Promise<void> {
  while (!p.draining.aborted) {
    await admitted(p, cursor)
    await delay(options.workEveryMs, undefined, { signal: p.draining }).catch(() => {})
  }
}

async function admitted(p: Partition, cursor: Cursor): Promise<void> {
  try {
    await p.work(async () => {
      const admittedMs = machineMs()
      if (options.asksFirst) await askFirst(p)
      await ask('apply', p, { token: p.token, sequence: cursor.next, admittedMs })
      cursor.next += 1
    })
  } catch (error: unknown) {
    if (isTenureError(error, 'work-refused')) {
      say({ type: 'not-admitted', token: p.token, reason: error.details['reason'] })
    }
    throw error
  }
}

async function askFirst(p: Partition): Promise<void> {
  await ask('begin', p, { token: p.token })
  let held = true
  try {
    p.check()
  } catch {
    held = false
  }
  say({ type: 'checked', token: p.token, held })
  // Nor is the next piece of work admitted. Its own piece never writes.
  if (!held) {
    await p
      .work(() => {})
      .catch((error: unknown) => {
        const reason = isTenureError(error) ? error.details['reason'] : String(error)
        say({ type: 'not-admitted', token: p.token, reason })
      })
  }
}

type Question = {
  readonly token: Token
  readonly sequence?: number
  readonly admittedMs?: number
}

/** Asks until the resource answers; a refusal is an error. */
async function ask(
  what: 'seal' | 'begin' | 'apply',
  p: Partition,
  body: Question,
): Promise<unknown> {
  for (;;) {
    const reply = await fetch(`${options.resourceUrl}/${what}`, {
      method: 'POST',
      body: JSON.stringify(body),
    }).catch(() => null)
    if (reply?.ok) return reply.json()
    if (reply?.status === 409) {
      const { highest } = (await reply.json()) as { highest: Position | null }
      say({ type: 'refused', token: body.token })
      if (highest !== null) p.refused(highest)
      throw new Error(`the resource refused to ${what}`)
    }
    await delay(RETRY_MS)
  }
}

function tellFailure(error: unknown): void {
  const code = isTenureError(error) ? error.code : 'unexpected'
  say({ type: 'failed', code, message: error instanceof Error ? error.message : String(error) })
}
