/**
 * Reads one subject through a named pull consumer that the server keeps: what was acknowledged never
 * comes again, whoever reads next.
 *
 *   no consumer ──made or found──▶ pull one ──message──▶ handed out ──acknowledged──▶ gone
 *        ▲                            │  ▲                   │ given back, or silent for ackWaitMs
 *        └── link changed, deleted ───┘  └───────────────────┘
 *
 * One message is pulled at a time, when the reader asks for it, so nothing is held here that nobody works
 * on. A pull that is under way when the reading ends cannot be called back: what it still brings is given
 * back at once, so that the next reader has not to wait `ackWaitMs` for it.
 *
 * With one unacknowledged message allowed, the server itself keeps the order over all readers. With more,
 * a reader that finds messages unacknowledged by the one before waits `ackWaitMs` first: they then come
 * before any later one.
 *
 * Not promised: once only. A message comes again when its acknowledgement is lost, or comes too late.
 */
import type { ConsumerInfo, Msg, NatsConnection } from 'nats'
import { AckPolicy, createInbox, DeliverPolicy, Empty, NatsError, nanos } from 'nats'
import { createTenureError } from '../core/tenure-error.ts'
import type { Delivery, DurableOptions } from '../ports/streams.ts'
import { pause, readPlace, STREAM_NOT_FOUND, unlessAborted } from './jetstream-consumer.ts'
import type { NatsLink } from './nats-link.ts'

const PULL_EXPIRES_MS = 2000
/** Without an answer for this long after a pull's end, the consumer counts as gone. */
const SILENCE_MS = 1000
const ACKNOWLEDGE_TIMEOUT_MS = 2000

export async function* readDurable(
  link: NatsLink,
  options: DurableOptions,
): AsyncGenerator<Delivery, void, void> {
  const { signal } = options
  let isFirst = true
  while (!signal.aborted && link.status() !== 'closed') {
    const connection = link.connection()
    const consumer =
      connection && (await unlessAborted(ensureConsumer(connection, options), signal))
    if (connection === null || consumer === null) {
      await pause(link, signal)
      continue
    }
    if (isFirst && options.unacknowledgedMax > 1 && consumer.num_ack_pending > 0) {
      await pause(link, signal, options.ackWaitMs)
    }
    isFirst = false
    const puller = new Puller(link, connection, options)
    try {
      for (;;) {
        const delivery = await puller.take()
        if (delivery === null) break
        yield delivery
      }
    } finally {
      puller.close()
    }
  }
}

/** Null when the server did not answer; tried again. */
async function ensureConsumer(
  connection: NatsConnection,
  options: DurableOptions,
): Promise<ConsumerInfo | null> {
  const { stream, consumer, subject, ackWaitMs, unacknowledgedMax } = options
  try {
    const manager = await connection.jetstreamManager({ checkAPI: false })
    return await manager.consumers.add(stream, {
      durable_name: consumer,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      filter_subject: subject,
      ack_wait: nanos(ackWaitMs),
      max_ack_pending: unacknowledgedMax,
      max_deliver: -1,
    })
  } catch (cause: unknown) {
    if (!(cause instanceof NatsError) || !cause.isJetStreamError()) return null
    const { err_code: code, description } = cause.api_error ?? {}
    const detail =
      code === STREAM_NOT_FOUND
        ? `there is no stream ${stream}`
        : `JetStream refused: ${description}`
    throw createTenureError('conflict', detail, { cause, details: { stream, consumer } })
  }
}

/** One connection's pulls, until something is amiss. */
class Puller {
  private readonly link: NatsLink
  private readonly connection: NatsConnection
  private readonly options: DurableOptions
  private readonly endings: (() => void)[] = []
  private readonly inbox = createInbox()
  private readonly arrived: Delivery[] = []
  private pulledAtMs = 0
  private status: 'idle' | 'pulling' | 'broken' = 'idle'
  private closed = false
  private waiting: (() => void) | null = null
  private watchdog: NodeJS.Timeout | null = null

  constructor(link: NatsLink, connection: NatsConnection, options: DurableOptions) {
    this.link = link
    this.connection = connection
    this.options = options
    const replies = connection.subscribe(this.inbox, {
      callback: (error, message) => {
        if (error === null) this.hear(message)
        else this.break()
      },
    })
    const wake = () => this.waiting?.()
    const listening = link.onStatus(() => this.break())
    options.signal.addEventListener('abort', wake)
    this.endings.push(
      () => replies.unsubscribe(),
      () => listening.close(),
      () => options.signal.removeEventListener('abort', wake),
    )
  }

  /** The next message; null once this connection is of no more use, or the reading is to end. */
  async take(): Promise<Delivery | null> {
    while (!this.options.signal.aborted) {
      const delivery = this.arrived.shift()
      if (delivery !== undefined) return delivery
      if (this.status === 'broken') return null
      if (this.status === 'idle') this.pull()
      await new Promise<void>((resolve) => {
        this.waiting = resolve
      })
      this.waiting = null
    }
    return null
  }

  /** Goes on listening while a pull is under way, to give back what it brings. */
  close(): void {
    this.closed = true
    for (const delivery of this.arrived.splice(0)) delivery.giveBack()
    if (this.status !== 'pulling') this.end()
  }

  private pull(): void {
    const { stream, consumer } = this.options
    this.status = 'pulling'
    this.pulledAtMs = performance.now()
    this.watchdog = setTimeout(() => this.break(), PULL_EXPIRES_MS + SILENCE_MS)
    const request = JSON.stringify({ batch: 1, expires: nanos(PULL_EXPIRES_MS) })
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
    this.connection.publish(subject, request, { reply: this.inbox })
  }

  private hear(message: Msg): void {
    const status = message.subject === this.inbox ? (message.headers?.code ?? 0) : 0
    if (status === 100) return
    if (this.watchdog !== null) clearTimeout(this.watchdog)
    if (this.status === 'pulling') this.status = 'idle'
    const delivery = status === 0 ? this.deliveryOf(message) : null
    if (delivery !== null) this.arrived.push(delivery)
    // 404 and 408: the pull ended with nothing. Anything else: the consumer is not what it was.
    else if (status !== 404 && status !== 408) this.status = 'broken'
    if (this.closed) this.close()
    else this.waiting?.()
  }

  private break(): void {
    this.status = 'broken'
    if (this.closed) this.end()
    else this.waiting?.()
  }

  private end(): void {
    if (this.watchdog !== null) clearTimeout(this.watchdog)
    for (const end of this.endings.splice(0)) end()
  }

  private deliveryOf(message: Msg): Delivery | null {
    const { subject, data, headers, reply = '' } = message
    const place = readPlace(reply)
    if (place === null) return null
    const { sequence, deliveries, storedAtMs } = place
    // The server counts from when it handed the message out, which was after the pull was sent.
    let heardAtMs = this.pulledAtMs
    const tell = (word: string) => this.link.connection()?.publish(reply, word)
    return {
      subject,
      data,
      sequence,
      deliveries,
      storedAtMs,
      messageId: headers?.get('Nats-Msg-Id') ?? '',
      acknowledge: () => acknowledge(this.link, reply),
      extend: () => {
        heardAtMs = performance.now()
        tell('+WPI')
      },
      giveBack: () => {
        if (performance.now() - heardAtMs < this.options.ackWaitMs) tell('-NAK')
      },
    }
  }
}

/** Asks the server to confirm the acknowledgement, so that the next reader certainly does not meet it. */
async function acknowledge(link: NatsLink, reply: string): Promise<boolean> {
  if (link.connection() === null) await link.waitConnected(ACKNOWLEDGE_TIMEOUT_MS)
  const connection = link.connection()
  if (connection === null) return false
  try {
    await connection.request(reply, Empty, { timeout: ACKNOWLEDGE_TIMEOUT_MS })
    return true
  } catch {
    return false
  }
}
