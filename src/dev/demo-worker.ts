/**
 * The demo's worker: reads its partitions' orders from JetStream in order, after the checkpoint that the
 * ledger keeps, and has the ledger apply each. It is what an author would write, fence included.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionOptions } from '../composition/environment.ts'
import { startWorker } from '../composition/start-worker.ts'
import type { GroupSettings } from '../core/group-config.ts'
import type { Position } from '../core/token.ts'
import { jetStreamOver } from '../nats/jetstream.ts'
import type { StreamMessage } from '../nats/jetstream-reader.ts'
import { openNatsLink } from '../nats/nats-link.ts'
import type { Partition, Worker, WorkerOptions } from '../runtime/worker-options.ts'
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
      const { checkpoint } = (await ask(ledgerUrl, 'seal', p, {})) as {
        checkpoint: number
      }
      return { next: checkpoint + 1 }
    },
    run: async (p, cursor) => {
      const subject = ordersSubject(p.id)
      const from = { stream: ORDERS_STREAM, subject, fromSequence: cursor.next }
      for await (const message of orders.read({ ...from, signal: p.draining })) {
        await p.work(() => handle(ledgerUrl, p, message))
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

async function handle(ledgerUrl: string, p: Partition, message: StreamMessage): Promise<void> {
  const { order, key } = JSON.parse(new TextDecoder().decode(message.data)) as Order
  await delay(message.sequence % THINK_MAX_MS)
  // No look at the gate here: a pause may fall just before the write, and the fence must refuse it.
  await ask(ledgerUrl, 'apply', p, { order, key, sequence: message.sequence })
}

/** Asks until the ledger answers. A refusal is an error; when the partition is lost, so is an outage. */
async function ask(
  ledgerUrl: string,
  what: 'seal' | 'apply',
  p: Partition,
  body: object,
): Promise<unknown> {
  for (;;) {
    const reply = await fetch(`${ledgerUrl}/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: p.token, ...body }),
    }).catch(() => null)
    if (reply?.ok) return reply.json()
    if (reply?.status === 409) {
      const { highest } = (await reply.json()) as { highest: Position | null }
      if (highest !== null) p.refused(highest)
      throw new Error(`the ledger refused: it has sealed ${JSON.stringify(highest)}`)
    }
    p.signal.throwIfAborted()
    await delay(RETRY_MS)
  }
}
