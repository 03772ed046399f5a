/**
 * A worker whose effects are in PostgreSQL, as a process: `postgres-program.ts <options as JSON>`. In
 * checkpoint mode each is one `fencedTransaction`; in durable mode a statement without a fence. It looks
 * at no signal before a write: a late write is to be refused by the fence alone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'pg'
import { startWorker } from '../../../src/composition/start-worker.ts'
import {
  connectStreams,
  type PartitionedConsumerOptions,
  partitionedConsumer,
  type Work,
} from '../../../src/composition/work.ts'
import {
  createPostgresFence,
  fencedTransaction,
  readCheckpoint,
} from '../../../src/fence/postgres.ts'
import type { WorkerProgramOptions } from './turmoil-world.ts'

export type PostgresProgramOptions = WorkerProgramOptions & {
  readonly databaseUrl: string
  readonly prefix: string
  readonly mode: 'checkpoint' | 'durable'
  readonly concurrency: number
  /** Longest thinking time before the transaction, and within it. */
  readonly thinkMaxMs: number
}

/** A paused owner's open transaction ends by then, and with it its locks. */
const IDLE_TIMEOUT_MS = 2000
const options = JSON.parse(process.argv[2] ?? '{}') as PostgresProgramOptions
const { group, member, settings, prefix, concurrency, thinkMaxMs } = options
const nats = { servers: [options.nats] }
const streams = await connectStreams({ nats })
const pool = new Pool({ connectionString: options.databaseUrl, max: 20 })
// The server ends connections that sat idle in a transaction; their next statement reports it.
pool.on('error', () => {})
const fence = createPostgresFence(pool, { group, idleTimeoutMs: IDLE_TIMEOUT_MS })

const worker = await startWorker({
  ...{ group, member, settings, nats, etcd: { endpoints: [options.etcd] } },
  ...partitionedConsumer(consumerOptions()),
})
try {
  await worker.done
} finally {
  await Promise.all([streams.close(), pool.end()])
}

function consumerOptions(): PartitionedConsumerOptions {
  const common = { streams, prefix, concurrency }
  if (options.mode === 'durable') {
    return { ...common, mode: 'durable', handle: (work) => insert(pool, work) }
  }
  return {
    ...common,
    seal: (token) => fence.seal(token),
    checkpoint: { load: (token, name) => readCheckpoint(pool, token, { name }) },
    handle: async (work) => {
      const { token, checkpoint, idempotencyKey } = work
      await think(work)
      const key = concurrency > 1 ? { idempotencyKey } : {}
      const fenced = { checkpoint, ...key, idleTimeoutMs: IDLE_TIMEOUT_MS }
      return fencedTransaction(pool, token, fenced, async (client) => insert(client, work))
    },
  }
}

async function insert(client: Pick<Pool, 'query'>, work: Work): Promise<void> {
  const { partition, generation, session } = work.token
  const { key, sequence, messageId } = work.message
  await think(work)
  await client.query(
    `insert into effects (partition, generation, session, key, sequence, message_id)
      values ($1, $2, $3, $4, $5, $6)`,
    [partition, generation, session, key, sequence, messageId],
  )
}

function think({ message }: Work): Promise<void> {
  return delay(message.sequence % thinkMaxMs)
}
