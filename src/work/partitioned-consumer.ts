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
 * others only once the window is full; then it becomes a dead letter. Refused by the fence: this grant's
 * run ends, quietly if the grant is over. A stream that ends before the checkpoint (deleted and made
 * anew) is an error, for new messages would be passed over.
 *
 * Not promised: failures counted across owners in checkpoint mode (in durable mode the server counts how
 * often it handed the message out, which a hand-over may raise without a failure); what the stream's limits removed; an
 * end to a message that ends the process each time.
 */
import { createTenureError, isTenureError } from '../core/tenure-error.ts'
import type { Clock } from '../ports/clock.ts'
import type { Delivery, StreamMessage } from '../ports/streams.ts'
import type { Partition, PartitionHandlers, WorkLimits } from '../runtime/worker-options.ts'
import { afterRefusal, attempt } from './attempts.ts'
import type { PartitionedConsumerOptions, Work, WorkMessage } from './consumer-options.ts'
import { deadLetter, publishLetter } from './dead-letters.ts'
import { Lanes } from './lanes.ts'
import { Progress } from './progress.ts'
import { sealOrThrow } from './seal.ts'
import { keyOfSubject, type WorkSubjects, workSubjects } from './subjects.ts'

/** What one grant knows of its messages. */
export type ConsumerCursor = {
  readonly progress: Progress
  /** The highest checkpoint that a handler was given and did its work with. */
  committed: number
}

export type ConsumerHandlers = Required<
  Pick<PartitionHandlers<ConsumerCursor>, 'acquire' | 'run' | 'release' | 'lost'>
> & { readonly limits: WorkLimits }

type Consumer = {
  readonly options: PartitionedConsumerOptions
  readonly clock: Clock
  readonly subjects: WorkSubjects
}

const PER_WORKER = 64
const WINDOW_PER_RUNNING = 8
const PREFETCH = 64
const FAILURES_MAX = 5
const ACK_WAIT_MS = 3000
const EXTENSIONS_PER_WAIT = 3

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
      await options.checkpoint.save?.(p.token, checkpoint)
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
    else await takeInOrder(consumer, p, cursor, lanes, ended.signal)
  } finally {
    await lanes.idle()
    cursor.progress.abandon()
  }
  if (lanes.failure === null) return
  const { error } = lanes.failure
  if (!isTenureError(error, 'fence-refused')) throw error
  await afterRefusal(consumer.clock, p, error)
}

async function takeInOrder(
  consumer: Consumer,
  p: Partition,
  cursor: ConsumerCursor,
  lanes: Lanes,
  signal: AbortSignal,
): Promise<void> {
  const { options, subjects } = consumer
  const { progress } = cursor
  await assertStreamReaches(consumer, progress.through)
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
}

/** @throws TenureError `conflict` when the checkpoint is beyond the stream's end. */
async function assertStreamReaches({ options, subjects }: Consumer, through: number) {
  const state = await options.streams.streamState(subjects.stream).catch((error: unknown) => {
    // Unreachable now: the reader waits for the server.
    if (isTenureError(error, 'broadcast-unreachable')) return null
    throw error
  })
  if (state === null || state.lastSequence >= through) return
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
    name,
    get sequence() {
      return reach()
    },
  }
  const isDone = await tryMessage(consumer, p, message, 0, {
    handle: (work) => options.handle({ ...work, checkpoint }),
    passOver: () => options.checkpoint.save?.(p.token, { name, sequence: reach() }),
  })
  if (!isDone) return
  progress.settle(sequence)
  cursor.committed = Math.max(cursor.committed, given)
}

async function takeDurable(
  consumer: Consumer,
  p: Partition,
  lanes: Lanes,
  signal: AbortSignal,
): Promise<void> {
  const { options, subjects } = consumer
  if (options.mode !== 'durable') return
  const { name = 'work' } = options
  const deliveries = options.streams.readDurable({
    stream: subjects.stream,
    subject: subjects.partition(p.id),
    consumer: `${name}-${p.id}`,
    ackWaitMs: options.ackWaitMs ?? ACK_WAIT_MS,
    unacknowledgedMax: windowOf(consumer),
    signal,
  })
  // The server may hand out again, after an outage, what is still worked on here.
  const held = new Set<number>()
  for await (const delivery of deliveries) {
    const { sequence, subject } = delivery
    if (held.has(sequence)) continue
    held.add(sequence)
    const extending = keepExtending(consumer, delivery)
    const end = () => {
      extending.end()
      held.delete(sequence)
    }
    const work = () => handleDurable(consumer, p, delivery).finally(end)
    lanes.add(keyOfSubject(subject), work, () => {
      end()
      delivery.giveBack()
    })
    await lanes.room()
  }
}

async function handleDurable(consumer: Consumer, p: Partition, delivery: Delivery): Promise<void> {
  const { options } = consumer
  const before = delivery.deliveries - 1
  try {
    const handle = options.mode === 'durable' ? options.handle : null
    const isDone = await tryMessage(consumer, p, delivery, before, {
      handle: (work) => handle?.(work),
      passOver: () => {},
    })
    // Not acknowledged for certain: it comes again, which this mode allows.
    if (isDone) await delivery.acknowledge()
    else delivery.giveBack()
  } catch (error: unknown) {
    delivery.giveBack()
    throw error
  }
}

/** Tells the server, while a message is held, that it is. */
function keepExtending({ options, clock }: Consumer, delivery: Delivery): { end(): void } {
  const ackWaitMs = (options.mode === 'durable' ? options.ackWaitMs : undefined) ?? ACK_WAIT_MS
  const extend = () => {
    delivery.extend()
    timer = clock.schedule(ackWaitMs / EXTENSIONS_PER_WAIT, extend)
  }
  let timer = clock.schedule(ackWaitMs / EXTENSIONS_PER_WAIT, extend)
  return { end: () => timer.cancel() }
}

/** False when it was left to the next owner. */
function tryMessage(
  { options, clock, subjects }: Consumer,
  p: Partition,
  message: StreamMessage,
  failuresBefore: number,
  {
    handle,
    passOver,
  }: {
    readonly handle: (work: Work) => void | Promise<void>
    readonly passOver: () => void | Promise<void> | undefined
  },
): Promise<boolean> {
  const { token } = p
  const given = workMessage(message)
  const idempotencyKey = `${subjects.stream}/${message.sequence}`
  return attempt(p, {
    clock,
    backOff: options.backOff ?? {},
    failuresBefore,
    failuresMax: options.failuresMax ?? FAILURES_MAX,
    run: (number) =>
      handle({
        ...{ message: given, token, partition: p, signal: p.signal, idempotencyKey },
        attempt: number,
      }),
    onFailure: (failures, error) => options.onFailure?.({ token, message: given, failures, error }),
    bury: async (failures, error) => {
      const letter = deadLetter(subjects.stream, message, { failures, error, token })
      // The letter first: passed over without one, the message would be gone.
      await publishLetter(options.streams, subjects, letter)
      await passOver()
      options.onDeadLetter?.(letter)
    },
  })
}

/** Messages taken and not done. One at a time in durable mode keeps the order over all owners. */
function windowOf({ options }: Consumer): number {
  const { concurrency = 1, window = WINDOW_PER_RUNNING * concurrency } = options
  return options.mode === 'durable' && concurrency === 1 ? 1 : Math.max(window, concurrency)
}

function workMessage(message: StreamMessage): WorkMessage {
  const { subject, data, sequence, messageId, storedAtMs } = message
  return { key: keyOfSubject(subject), data, subject, sequence, messageId, storedAtMs }
}

function checkpointName({ options, subjects }: Consumer): string {
  const named = options.mode === 'durable' ? undefined : options.checkpoint.name
  return named ?? subjects.stream
}
