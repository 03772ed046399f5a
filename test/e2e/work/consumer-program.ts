/**
 * A worker as its author would write it, as a process: `consumer-program.ts <options as JSON>`. It works
 * on the messages of its partitions and has the ledger apply each, token and checkpoint with it. It looks
 * at no signal before a write: a late write is to be refused by the ledger alone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { startWorker } from '../../../src/composition/start-worker.ts'
import { connectStreams, partitionedConsumer } from '../../../src/composition/work.ts'
import { isTenureError } from '../../../src/core/tenure-error.ts'
import type { Token } from '../../../src/core/token.ts'
import { createHttpFence, fencedFetch } from '../../../src/fence/http.ts'
import { logDeliveries } from './delivery-log.ts'
import type { WorkerProgramOptions } from './turmoil-world.ts'

export type ConsumerProgramOptions = WorkerProgramOptions & {
  readonly ledgerUrl: string
  readonly prefix: string
  /** Longest thinking time before a write, which a pause may interrupt. */
  readonly thinkMaxMs: number
}

const RETRY_MS = 50
const options = JSON.parse(process.argv[2] ?? '{}') as ConsumerProgramOptions
const ledger = createHttpFence({ baseUrl: options.ledgerUrl, group: options.group })
const nats = { servers: [options.nats] }
// The ledger answers a seal with the checkpoint: both are read in one step.
const sealed = new Map<number, { readonly generation: number; readonly checkpoint: number }>()
const streams = logDeliveries(await connectStreams({ nats }), {
  ...{ logFolder: options.logFolder, member: options.member },
  generationOf: (partition) => sealed.get(partition)?.generation ?? 0,
})

const worker = await startWorker({
  ...{ group: options.group, member: options.member, settings: options.settings, nats },
  etcd: { endpoints: [options.etcd] },
  ...partitionedConsumer({
    streams,
    prefix: options.prefix,
    seal: async (token) => {
      const seen = await insist(() => ledger.sealAndRead(token))
      const { checkpoint } = seen as { checkpoint: number }
      sealed.set(token.partition, { generation: token.generation, checkpoint })
    },
    checkpoint: { load: (token) => sealed.get(token.partition)?.checkpoint ?? null },
    handle: async ({ message, token, checkpoint }) => {
      await delay(message.sequence % options.thinkMaxMs)
      const { key, messageId } = message
      const { sequence } = checkpoint
      await insist(() => apply(token, { order: messageId, key, sequence }))
    },
    failuresMax: Number.POSITIVE_INFINITY,
  }),
})
await worker.done.finally(() => streams.close())

async function apply(token: Token, body: object): Promise<void> {
  const reply = await fencedFetch(token)(`${options.ledgerUrl}/apply`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!reply.ok) throw new Error(`the ledger answered ${reply.status}: ${await reply.text()}`)
}

/** Asks until the ledger answers; a refusal is an error. */
async function insist<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request()
    } catch (error: unknown) {
      if (isTenureError(error)) throw error
      await delay(RETRY_MS)
    }
  }
}
