/**
 * A worker as its author would write it, as a process: `consumer-program.ts <options as JSON>`. It works
 * on the messages of its partitions and has the ledger apply each, token and checkpoint with it. It looks
 * at no signal before a write: a late write is to be refused by the ledger alone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { startWorker } from '../../../src/composition/start-worker.ts'
import { connectStreams, partitionedConsumer } from '../../../src/composition/work.ts'
import type { GroupSettings } from '../../../src/core/group-config.ts'
import { createTenureError } from '../../../src/core/tenure-error.ts'
import type { Token } from '../../../src/core/token.ts'
import { encodeTokenHeader } from '../../../src/core/token-text.ts'
import { TOKEN_HEADER } from '../../../src/fence/http.ts'

export type ConsumerProgramOptions = {
  readonly group: string
  readonly member: string
  readonly settings: GroupSettings
  readonly etcd: string
  readonly nats: string
  readonly ledgerUrl: string
  readonly prefix: string
  /** Longest thinking time before a write, which a pause may interrupt. */
  readonly thinkMaxMs: number
}

const RETRY_MS = 50
const options = JSON.parse(process.argv[2] ?? '{}') as ConsumerProgramOptions
const nats = { servers: [options.nats] }
const streams = await connectStreams({ nats })
// The ledger answers a seal with the checkpoint: both are read in one step.
const checkpoints = new Map<number, number>()

const worker = await startWorker({
  ...{ group: options.group, member: options.member, settings: options.settings, nats },
  etcd: { endpoints: [options.etcd] },
  ...partitionedConsumer({
    streams,
    prefix: options.prefix,
    seal: async (token) => {
      const { checkpoint } = (await ask('tenure/seal', token, {})) as { checkpoint: number }
      checkpoints.set(token.partition, checkpoint)
    },
    checkpoint: { load: (token) => checkpoints.get(token.partition) ?? null },
    handle: async ({ message, token, checkpoint }) => {
      await delay(message.sequence % options.thinkMaxMs)
      const { key, messageId } = message
      await ask('apply', token, { order: messageId, key, sequence: checkpoint.sequence })
    },
    failuresMax: Number.POSITIVE_INFINITY,
  }),
})
await worker.done.finally(() => streams.close())

/** Asks until the ledger answers. */
async function ask(what: 'tenure/seal' | 'apply', token: Token, body: object): Promise<unknown> {
  for (;;) {
    const reply = await fetch(`${options.ledgerUrl}/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [TOKEN_HEADER]: encodeTokenHeader(token) },
      body: JSON.stringify(body),
    }).catch(() => null)
    if (reply?.ok) return reply.json()
    if (reply?.status === 409) {
      const { highest } = (await reply.json()) as { highest: unknown }
      throw createTenureError('fence-refused', `the ledger refused to ${what}`, {
        details: { highest },
      })
    }
    await delay(RETRY_MS)
  }
}
