/**
 * The demo's worker: reads its partitions' orders from JetStream in order, after the checkpoint that the
 * ledger keeps, and has the ledger apply each. It is what an author would write, fence included.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionOptions } from '../composition/environment.ts'
import { startWorker } from '../composition/start-worker.ts'
import type { GroupSettings } from '../core/group-config.ts'
import { isTenureError } from '../core/tenure-error.ts'
import type { Position } from '../core/token.ts'
import { createHttpFence, fencedFetch } from '../fence/http.ts'
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
const THINK_MAX_MS = 160
const RETRY_MS = 100

type Order = { readonly order: string; readonly key: string }

/** @throws TenureError as `startWorker` does. */
export async function startDemoWorker(options: DemoWorkerOptions): Promise<Worker> {
  const { ledgerUrl, natsServers, ...rest } = options
  const link = openNatsLink({ servers: natsServers, name: 'tenure-demo-worker' })
  const orders = jetStreamOver(link)
  const ledger = createHttpFence({ baseUrl: ledgerUrl, group: options.group })
  const worker = await startWorker<{ next: number }>({
    ...rest,
    acquire: async (p) => {
      const sealed = await insist(p, () => ledger.sealAndRead(p.token))
      const { checkpoint } = sealed as { checkpoint: number }
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
  const body = JSON.stringify({ order, key, sequence: message.sequence })
  const headers = { 'content-type': 'application/json' }
  await insist(p, async () => {
    const reply = await fencedFetch(p.token)(`${ledgerUrl}/apply`, {
      method: 'POST',
      headers,
      body,
    })
    if (!reply.ok) throw new Error(`the ledger answered ${reply.status}: ${await reply.text()}`)
  })
}

/** Asks until the ledger answers. A refusal is an error; when the partition is lost, so is an outage. */
async function insist<T>(p: Partition, request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request()
    } catch (error) {
      if (isTenureError(error, 'fence-refused')) {
        const highest = error.details['highest'] as Position | null
        if (highest !== null) p.refused(highest)
        throw error
      }
      if (isTenureError(error, 'invalid-argument')) throw error
      p.signal.throwIfAborted()
      await delay(RETRY_MS)
    }
  }
}
