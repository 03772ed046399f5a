/**
 * The checkpoint mode's reading and handling: an ordered reader per grant, each message handled with the
 * checkpoint that its effect may commit (work/partitioned-consumer.ts says what that promises).
 */
import { createTenureError, isTenureError } from '../core/tenure-error.ts'
import type { StreamMessage } from '../ports/streams.ts'
import type { Partition } from '../runtime/worker-options.ts'
import { requireOk } from './fenced-results.ts'
import { type Consumer, checkpointName, tryMessage } from './handled-message.ts'
import type { Lanes } from './lanes.ts'
import type { Progress } from './progress.ts'
import { keyOfSubject } from './subjects.ts'

/** What one grant knows of its messages. */
export type ConsumerCursor = {
  readonly progress: Progress
  /** The highest checkpoint that a handler was given and did its work with. */
  committed: number
}

const PREFETCH = 64

/**
 * Takes the partition's messages in order, from after the checkpoint on, until `ended`.
 * @throws TenureError `conflict` when the checkpoint is beyond the stream's end, or there is no stream
 */
export async function takeInOrder(
  consumer: Consumer,
  p: Partition,
  cursor: ConsumerCursor,
  lanes: Lanes,
  ended: AbortController,
): Promise<void> {
  const { options, subjects } = consumer
  const { progress } = cursor
  const { signal } = ended
  // Asked while the first messages are on their way: a stream that ends too early has none of them.
  const reaching = assertStreamReaches(consumer, progress.through).catch((error: unknown) => {
    ended.abort()
    return { error }
  })
  const messages = options.streams.read({
    stream: subjects.stream,
    subject: subjects.partition(p.id),
    fromSequence: progress.through + 1,
    batch: options.prefetch ?? PREFETCH,
    signal,
  })
  for await (const message of messages) {
    if (!progress.take(message.sequence)) continue
    lanes.add(keyOfSubject(message.subject), () => handleInOrder(consumer, p, cursor, message))
    await lanes.room()
  }
  // Over by a drain, it waits for no answer; over by a bad one, that is there.
  const bad = await Promise.race([reaching, Promise.resolve()])
  if (bad !== undefined) throw bad.error
}

/** @throws TenureError `conflict` when the checkpoint is beyond the stream's end. */
async function assertStreamReaches(
  { options, subjects }: Consumer,
  through: number,
): Promise<undefined> {
  const state = await options.streams.streamState(subjects.stream).catch((error: unknown) => {
    // Unreachable now: the reader waits for the server.
    if (isTenureError(error, 'broadcast-unreachable')) return null
    throw error
  })
  if (state === null || state.lastSequence >= through) return undefined
  throw createTenureError(
    'conflict',
    `the checkpoint ${through} is beyond the end of stream ${subjects.stream} (${state.lastSequence}): it was made anew; set the checkpoint back, or name another`,
    { details: { stream: subjects.stream, checkpoint: through, last: state.lastSequence } },
  )
}

async function handleInOrder(
  consumer: Consumer,
  p: Partition,
  cursor: ConsumerCursor,
  message: StreamMessage,
): Promise<void> {
  const { options } = consumer
  if (options.mode === 'durable') return
  const { progress } = cursor
  const { sequence } = message
  const name = checkpointName(consumer)
  let given = 0
  const reach = () => {
    given = progress.reach(sequence)
    return given
  }
  // Looked at when the effect is committed: what was done meanwhile counts.
  const checkpoint = {
    ...{ name, position: sequence },
    get sequence() {
      return reach()
    },
  }
  const isDone = await tryMessage(consumer, p, message, 0, {
    handle: (work) => options.handle({ checkpoint, ...work }),
    passOver: async () =>
      requireOk(await options.checkpoint.save?.(p.token, { name, sequence: reach() }), p),
  })
  if (!isDone) return
  progress.settle(sequence)
  cursor.committed = Math.max(cursor.committed, given)
}
