/**
 * Work that survives every hand-over: a partition's messages, handled by its owner, from a stream with a
 * subject per partition. What `createPartitionedConsumer` returns is spread into `startWorker`.
 *
 *   acquire   seal every resource, then load the checkpoint
 *   run       read ──▶ lanes (in order per key) ──▶ handle ──▶ settled: checkpointed or acknowledged
 *                └─◀── no more is taken while the window is full (back-pressure)
 *   release   what is done and not committed as checkpoint is
 *   lost      nothing: the next owner goes by what is stored
 *
 * *checkpoint* (the default): an ordered reader per grant starts after the checkpoint that the fenced
 * resource keeps. The handler commits effect and checkpoint together, so with one message at a time each
 * is applied exactly once, in order per key across hand-overs. With `concurrency` above 1 the checkpoint
 * is that of the longest run without a gap; what is done above it is handled again by a new owner, so
 * the effect must commit with `idempotencyKey` too.
 *
 * *durable*: for resources without a checkpoint. A named consumer per partition, acknowledged after the
 * effect: at least once. With one message at a time the server itself keeps the order across
 * hand-overs. With more, an owner that finds messages unacknowledged first waits `ackWaitMs` for them.
 * `ackWaitMs` is short since it is renewed during the work: a drained owner hands back at once what it
 * holds, and a dead one's session outlasts it, so a new owner hardly ever waits.
 *
 * Failure cases. A handler that throws is tried again after a growing wait, which delays its own key, and
 * others only once the window is full; then it becomes a dead letter. A server out of reach is waited
 * for, and is no failure of the message. Refused by the fence, thrown or returned: this grant's run ends,
 * quietly if the grant is over. A stream that ends before the checkpoint (deleted and made
 * anew) is an error, for new messages would be passed over.
 *
 * Not promised: failures counted across owners in checkpoint mode (in durable mode the server counts how
 * often it handed the message out, which a hand-over may raise without a failure); what the stream's limits removed; an
 * end to a message that ends the process each time.
 */
import { createTenureError, isTenureError } from '../core/tenure-error.ts'
import type { Clock } from '../ports/clock.ts'
import type { Partition, PartitionHandlers, WorkLimits } from '../runtime/worker-options.ts'
import { afterRefusal } from './attempts.ts'
import { type ConsumerCursor, takeInOrder } from './checkpoint-mode.ts'
import type { PartitionedConsumerOptions } from './consumer-options.ts'
import { takeDurable } from './durable-mode.ts'
import { requireOk, sealOrThrow } from './fenced-results.ts'
import { type Consumer, checkpointName, windowOf } from './handled-message.ts'
import { Lanes } from './lanes.ts'
import { Progress } from './progress.ts'
import { workSubjects } from './subjects.ts'

export type ConsumerHandlers = Required<
  Pick<PartitionHandlers<ConsumerCursor>, 'acquire' | 'run' | 'release' | 'lost'>
> & { readonly limits: WorkLimits }

const PER_WORKER = 64

/** @throws TenureError `invalid-argument` for limits below 1 or a prefix that is no subject. */
export function createPartitionedConsumer(
  options: PartitionedConsumerOptions,
  clock: Clock,
): ConsumerHandlers {
  const { perWorker = PER_WORKER, concurrency = 1, window, prefetch, failuresMax } = options
  for (const [name, value] of Object.entries({
    perWorker,
    concurrency,
    window,
    prefetch,
    failuresMax,
  })) {
    if (value === undefined || value >= 1) continue
    throw createTenureError('invalid-argument', `${name} is ${value}, must be 1 or more`)
  }
  const consumer = { options, clock, subjects: workSubjects(options.prefix, options.stream) }
  return {
    limits: { perWorker },
    acquire: async (p) => {
      if (options.seal !== undefined) await sealOrThrow(options.seal, p)
      const stored =
        options.mode === 'durable'
          ? 0
          : ((await options.checkpoint.load(p.token, checkpointName(consumer))) ?? 0)
      return { progress: new Progress(stored), committed: stored }
    },
    run: (p, cursor) => runGrant(consumer, p, cursor),
    release: async (p, cursor) => {
      const { through } = cursor.progress
      if (options.mode === 'durable' || through <= cursor.committed) return
      const checkpoint = { name: checkpointName(consumer), sequence: through }
      requireOk(await options.checkpoint.save?.(p.token, checkpoint), p)
    },
    lost: () => {},
  }
}

async function runGrant(consumer: Consumer, p: Partition, cursor: ConsumerCursor): Promise<void> {
  const { concurrency = 1 } = consumer.options
  const ended = new AbortController()
  const lanes = new Lanes({
    runningMax: concurrency,
    heldMax: windowOf(consumer),
    onFailure: () => ended.abort(),
  })
  if (p.draining.aborted) ended.abort()
  p.draining.addEventListener('abort', () => ended.abort(), { once: true })
  try {
    if (consumer.options.mode === 'durable') await takeDurable(consumer, p, lanes, ended.signal)
    else await takeInOrder(consumer, p, cursor, lanes, ended)
  } finally {
    await lanes.idle()
    cursor.progress.abandon()
  }
  if (lanes.failure === null) return
  const { error } = lanes.failure
  if (!isTenureError(error, 'fence-refused')) throw error
  await afterRefusal(consumer.clock, p, error)
}
