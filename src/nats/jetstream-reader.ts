/**
 * Reads one subject of a stream in order, from a given sequence on.
 *
 * An ephemeral consumer without acknowledgements is made at the next wanted sequence and pulled from in
 * batches. Whenever the connection changes, the server falls silent, the consumer is gone or a delivery
 * is missing, it is thrown away and a new one made after the last message that was handed out: nothing
 * is skipped, nothing comes twice, order is the stream's. The next batch is pulled when the one before
 * has been taken, so a slow reader holds at most one batch.
 *
 * Pulls are made over core NATS: the client library's own reader drops what a slow reader has not taken
 * when its pull expires, without saying so.
 */
import type { Msg, NatsConnection } from 'nats'
import { AckPolicy, createInbox, DeliverPolicy, NatsError, nanos } from 'nats'
import { createTenureError } from '../core/tenure-error.ts'
import type { ReadOptions, StreamMessage } from '../ports/streams.ts'
import { pause, readPlace, STREAM_NOT_FOUND, unlessAborted } from './jetstream-consumer.ts'
import type { NatsLink } from './nats-link.ts'

export type { ReadOptions, StreamMessage } from '../ports/streams.ts'

const BATCH = 256
const PULL_EXPIRES_MS = 5000
const HEARTBEAT_MS = 1000
/** Without a sign of life for this long the consumer counts as gone. */
const SILENCE_MS = 3000
const CONSUMER_INACTIVE_MS = 30_000

export async function* readInOrder(
  link: NatsLink,
  options: ReadOptions,
): AsyncGenerator<StreamMessage, void, void> {
  const { stream, subject, signal, batch = BATCH } = options
  let next = options.fromSequence
  while (!signal.aborted && link.status() !== 'closed') {
    const connection = link.connection()
    const consumer =
      connection &&
      (await unlessAborted(createConsumer(connection, stream, subject, next), signal, (late) => {
        if (late !== null) void deleteConsumer(connection, stream, late)
      }))
    if (connection === null || consumer === null) {
      await pause(link, signal)
      continue
    }
    const pulls = new Pulls(link, connection, { stream, consumer, batch, signal })
    try {
      for (;;) {
        const message = await pulls.take()
        if (message === null) break
        next = message.sequence + 1
        yield message
      }
    } finally {
      pulls.close()
      void deleteConsumer(connection, stream, consumer)
    }
  }
}

/** Null when the server did not answer; tried again. */
async function createConsumer(
  connection: NatsConnection,
  stream: string,
  subject: string,
  fromSequence: number,
): Promise<string | null> {
  try {
    const manager = await connection.jetstreamManager({ checkAPI: false })
    const { name } = await manager.consumers.add(stream, {
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: Math.max(1, fromSequence),
      filter_subject: subject,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(CONSUMER_INACTIVE_MS),
    })
    return name
  } catch (cause: unknown) {
    if (cause instanceof NatsError && cause.api_error?.err_code === STREAM_NOT_FOUND) {
      throw createTenureError('conflict', `there is no stream ${stream}`, { cause })
    }
    return null
  }
}

async function deleteConsumer(
  connection: NatsConnection,
  stream: string,
  consumer: string,
): Promise<void> {
  try {
    if (connection.isClosed()) return
    const manager = await connection.jetstreamManager({ checkAPI: false })
    await manager.consumers.delete(stream, consumer)
  } catch {
    // It ends by itself when nobody pulls from it.
  }
}

type PullOptions = {
  readonly stream: string
  readonly consumer: string
  readonly batch: number
  readonly signal: AbortSignal
}

/** One consumer's pulls, until something is amiss. */
class Pulls {
  private readonly connection: NatsConnection
  private readonly options: PullOptions
  private readonly endings: (() => void)[] = []
  private readonly inbox = createInbox()
  private queue: StreamMessage[] = []
  /** Messages that the pull under way may still bring; 0: none is under way. */
  private expected = 0
  private delivered = 0
  private broken = false
  private waiting: (() => void) | null = null
  private watchdog: NodeJS.Timeout | null = null

  constructor(link: NatsLink, connection: NatsConnection, options: PullOptions) {
    this.connection = connection
    this.options = options
    const { signal } = options
    const replies = connection.subscribe(this.inbox, {
      callback: (error, message) => {
        if (error === null) this.hear(message)
        else this.break()
      },
    })
    const listening = link.onStatus(() => this.break())
    const onAbort = () => {
      this.queue = []
      this.break()
    }
    signal.addEventListener('abort', onAbort)
    this.endings.push(
      () => replies.unsubscribe(),
      () => listening.close(),
      () => signal.removeEventListener('abort', onAbort),
    )
    if (signal.aborted) this.break()
  }

  /** The next message; null once this consumer is of no more use. */
  async take(): Promise<StreamMessage | null> {
    for (;;) {
      const message = this.queue.shift()
      if (message !== undefined) return message
      if (this.broken) return null
      if (this.expected === 0) this.pull()
      await new Promise<void>((resolve) => {
        this.waiting = resolve
      })
      this.waiting = null
    }
  }

  close(): void {
    this.break()
    for (const end of this.endings) end()
  }

  private pull(): void {
    const { stream, consumer, batch } = this.options
    this.expected = batch
    this.watch()
    const request = { batch, expires: nanos(PULL_EXPIRES_MS), idle_heartbeat: nanos(HEARTBEAT_MS) }
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
    this.connection.publish(subject, JSON.stringify(request), { reply: this.inbox })
  }

  private hear(message: Msg): void {
    if (this.broken) return
    this.watch()
    const status = message.subject === this.inbox ? (message.headers?.code ?? 0) : 0
    if (status === 100) return
    const isOver = status === 404 || status === 408
    if (isOver) this.expected = 0
    else if (status !== 0 || !this.accept(message)) this.break()
    if (this.expected === 0 && this.watchdog !== null) clearTimeout(this.watchdog)
    this.waiting?.()
  }

  /** False when a delivery before this one is missing. */
  private accept(message: Msg): boolean {
    const place = readPlace(message.reply ?? '')
    if (place === null || place.delivery !== this.delivered + 1) return false
    this.delivered += 1
    this.expected = Math.max(0, this.expected - 1)
    const { subject, data, headers } = message
    const { sequence, storedAtMs } = place
    const messageId = headers?.get('Nats-Msg-Id') ?? ''
    this.queue.push({ subject, sequence, data, messageId, storedAtMs })
    return true
  }

  private watch(): void {
    if (this.watchdog !== null) clearTimeout(this.watchdog)
    this.watchdog = setTimeout(() => this.break(), SILENCE_MS)
  }

  private break(): void {
    this.broken = true
    if (this.watchdog !== null) clearTimeout(this.watchdog)
    this.waiting?.()
  }
}
