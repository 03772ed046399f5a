/**
 * A worker as its author would write it, on PostgreSQL: `worker-program.ts <input as JSON>`. It looks at
 * no signal before a write, so a late one is to be refused by the fence alone.
 *
 * SIGUSR2 blocks its event loop for a while. Exit code 3: a server could not be reached at the start.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'pg'
import { startWorker } from '../../src/composition/start-worker.ts'
import {
  type CheckpointedWork,
  connectStreams,
  partitionedConsumer,
} from '../../src/composition/work.ts'
import type { GroupSettings } from '../../src/core/group-config.ts'
import { createTenureError, isTenureError } from '../../src/core/tenure-error.ts'
import { machineMs } from '../../src/dev/machine-time.ts'
import type { EffectLine } from '../../src/evidence/accept-log.ts'
import { createPostgresFence, fencedTransaction, readCheckpoint } from '../../src/fence/postgres.ts'
import type { Partition } from '../../src/runtime/worker-options.ts'
import { recordEffect } from './accept-store.ts'
import type { OrderBody } from './producer-program.ts'
import { EXIT_UNREACHABLE } from './worker-ends.ts'

export type WorkerInput = {
  readonly group: string
  readonly member: string
  readonly settings: GroupSettings
  readonly etcd: readonly string[]
  readonly nats: readonly string[]
  readonly postgres: string
  readonly prefix: string
  readonly thinkMaxMs: number
  /** How long an order that is marked so keeps its worker busy. */
  readonly stuckMs: number
  /** How long SIGUSR2 blocks the event loop. */
  readonly blockMs: number
  /** Where it writes what the fence refused it. */
  readonly refusedFile: string
}

/** What the fence told a worker; the reason is not in an accept log. */
export type RefusedLine = EffectLine & { readonly reason: 'stale' | 'unsealed' }

const RETRY_MS = 100
/** A paused worker keeps a new owner's seal waiting for no longer. */
const IDLE_TIMEOUT_MS = 1500
const START_FAULTS = ['store-unreachable', 'broadcast-unreachable', 'timed-out'] as const

const input = JSON.parse(process.argv[2] ?? '{}') as WorkerInput
process.on('SIGUSR2', () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, input.blockMs)
})
const pool = new Pool({
  connectionString: input.postgres,
  ...{ max: 8, connectionTimeoutMillis: 2000, query_timeout: 5000 },
  ...{ keepAlive: true, keepAliveInitialDelayMillis: 2000 },
})
// A broken connection shows in the call that uses it.
pool.on('error', () => {})
const fence = createPostgresFence(pool, { group: input.group, idleTimeoutMs: IDLE_TIMEOUT_MS })

const started = await start().catch((error: unknown) => {
  console.error(error)
  const isFault = START_FAULTS.some((code) => isTenureError(error, code))
  process.exit(isFault ? EXIT_UNREACHABLE : 1)
})
try {
  await started.worker.done
} finally {
  await Promise.all([started.streams.close(), pool.end()])
}

async function start() {
  const nats = { servers: input.nats }
  const streams = await connectStreams({ nats })
  const worker = await startWorker({
    ...{ group: input.group, member: input.member, settings: input.settings, nats },
    etcd: { endpoints: input.etcd },
    ...partitionedConsumer({
      ...{ streams, prefix: input.prefix, failuresMax: Number.POSITIVE_INFINITY },
      backOff: { firstMs: 100, maxMs: 1000 },
      seal: (token, partition) => insist(partition, () => fence.seal(token)),
      checkpoint: { load: (token, name) => readCheckpoint(pool, token, { name }) },
      handle,
    }),
  })
  return { worker, streams }
}

async function handle({ message, token, checkpoint, attempt }: CheckpointedWork): Promise<void> {
  const { stuck } = JSON.parse(new TextDecoder().decode(message.data)) as OrderBody
  await delay(stuck && attempt === 1 ? input.stuckMs : message.sequence % input.thinkMaxMs)
  const beginMs = machineMs()
  const { key, messageId, sequence } = message
  // The order's own id: a stream that stored it twice has it applied once.
  const options = {
    ...{ idempotencyKey: messageId, checkpoint },
    idleTimeoutMs: IDLE_TIMEOUT_MS,
  }
  const outcome = await fencedTransaction(pool, token, options, (client) =>
    recordEffect(client, token, { input: messageId, key, sequence }),
  )
  if (outcome.ok) return
  const { reason, highest } = outcome
  const refused: RefusedLine = {
    ...{ type: 'effect', token, input: messageId, outcome: 'refused', reason },
    ...{ beginMs, endMs: machineMs() },
  }
  appendFileSync(input.refusedFile, `${JSON.stringify(refused)}\n`)
  throw createTenureError('fence-refused', `order ${messageId} is refused: ${reason}`, {
    details: { reason, highest, partition: token.partition },
  })
}

/** Asks until PostgreSQL answers, or the partition is lost. */
async function insist<T>(partition: Partition, request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request()
    } catch (error: unknown) {
      if (isTenureError(error) && error.code !== 'store-unreachable') throw error
      partition.signal.throwIfAborted()
      await delay(RETRY_MS)
    }
  }
}
