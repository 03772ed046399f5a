/**
 * The demo's worker: reads its partitions' orders from JetStream in order, after the checkpoint that the
 * ledger keeps, and has the ledger apply each. It is what an author would write, fence included.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionOptions } from '../composition/environment.ts'
import { startWorker } from '../composition/start-worker.ts'
import type { GroupSettings } from '../core/group-config.ts'
import type { Token } from '../core/token.ts'
import { jetStreamOver } from '../nats/jetstream.ts'
import type { StreamMessage } from '../nats/jetstream-reader.ts'
import { openNatsLink } from '../nats/nats-link.ts'
import type { Worker, WorkerOptions } from '../runtime/worker-options.ts'
import { ORDERS_STREAM, ordersSubject } from './producer.ts'

export type DemoWorkerOptions = ConnectionOptions &
  Pick<WorkerOptions<void>, 'member' | 'address' | 'weight' | 'capacity' | 'zone' | 'signals'> & {
    readonly group: string
    readonly ledgerUrl: string
    readonly natsServers: readonly string[]
    readonly settings?: GroupSettings
  }

/** Thinking time before the ledger is asked: work that a pause may interrupt. */
const THINK_MAX_MS = 30
const RETRY_MS = 100

type Order = { readonly order: string; readonly key: string }

/** @throws TenureError as `startWorker` does. */
export async function startDemoWorker(options: DemoWorkerOptions): Promise<Worker> {
  const { ledgerUrl, natsServers, ...rest } = options
  const link = openNatsLink({ servers: natsServers, name: 'tenure-demo-worker' })
  const orders = jetStreamOver(link)
  const worker = await startWorker<{ next: number }>({
    ...rest,
    acquire: async (p) => {
      const { checkpoint } = (await ask(ledgerUrl, 'seal', { token: p.token }, p.signal)) as {
        checkpoint: number
      }
      return { next: checkpoint + 1 }
    },
    run: async (p, cursor) => {
      const subject = ordersSubject(p.id)
      const from = { stream: ORDERS_STREAM, subject, fromSequence: cursor.next }
      for await (const message of orders.read({ ...from, signal: p.draining })) {
        await p.work(() => handle(ledgerUrl, p.token, message, p.signal))
        cursor.next = message.sequence + 1
      }
    },
  })
  worker.done.then(
    () => link.close(),
    () => link.close(),
  )
  return worker
}

async function handle(
  ledgerUrl: string,
  token: Token,
  message: StreamMessage,
  signal: AbortSignal,
): Promise<void> {
  const { order, key } = JSON.parse(new TextDecoder().decode(message.data)) as Order
  await delay(message.sequence % THINK_MAX_MS)
  // No look at the gate here: a pause may fall just before the write, and the fence must refuse it.
  await ask(ledgerUrl, 'apply', { token, order, key, sequence: message.sequence }, signal)
}

/** Asks until the ledger answers. A refusal is an error; when the partition is lost, so is an outage. */
async function ask(
  ledgerUrl: string,
  what: 'seal' | 'apply',
  body: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  for (;;) {
    const reply = await fetch(`${ledgerUrl}/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).catch(() => null)
    if (reply?.ok) return reply.json()
    if (reply?.status === 409) throw new Error(`the ledger refused: ${await reply.text()}`)
    signal.throwIfAborted()
    await delay(RETRY_MS)
  }
}
