/**
 * A client of the in-memory NATS: the broadcast port, and the switches by which a test or simulator
 * lets this one client lose messages.
 *
 *   connected -> disconnected   by `disconnect` (until `reconnect`), by the server going down, by
 *                               reading too slowly, or by pings unanswered over a cut line (until it
 *                               has reconnected by itself)
 *   any -> closed, or abandoned
 *
 * Messages on the way when a connection ends are lost, and requests that wait for replies end.
 * Subscriptions stand at the server again before the status turns `connected`; what was published in
 * between is not delivered. The process learns of an end in a timer of its own clock, so one that is
 * paused goes on believing in its connection.
 */
import type { Broadcast, BroadcastStatus, Message, Subscription } from '../ports/broadcast.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { type BroadcastFaults, drawDelayMs, noBroadcastFaults } from './faults.ts'
import { MessageLine } from './message-line.ts'
import type {
  NatsServer,
  ServerConnection,
  ServerSubscription,
  WireMessage,
} from './nats-server.ts'
import type { Cut } from './store-link.ts'

/** Two pings of the real client, unanswered. */
const PING_LIMIT_MS = 10_000

export interface MemoryBroadcast extends Broadcast {
  readonly name: string
  /** Chances and delays of this client; change its fields at any time. */
  readonly faults: BroadcastFaults
  /** Ends the connection until `reconnect`. */
  disconnect(): void
  reconnect(): void
  /**
   * Silence: what it sends does not arrive (`requests`), what is sent to it does not (`replies`), or
   * neither. Both wait, as TCP lets them, until `heal`, or are lost with the connection after 10 s.
   */
  cutOff(cut: Cut): void
  heal(): void
  /** The process is gone: the server forgets this client, which is told nothing. */
  abandon(): void
}

export class ConnectedBroadcast implements MemoryBroadcast {
  readonly name: string
  readonly faults: BroadcastFaults = noBroadcastFaults()
  readonly #server: NatsServer
  readonly #clock: Clock
  readonly #connection: ServerConnection
  /** What the process wants to hear. */
  readonly #subscriptions = new Set<ServerSubscription>()
  /** What the server knows of: a little behind. */
  readonly #atServer = new Set<ServerSubscription>()
  readonly #listeners = new Set<(status: BroadcastStatus) => void>()
  #status: BroadcastStatus
  /** `disconnect` was called: it does not come back by itself. */
  #heldOff = false
  /** Whether the server knows of the connection; the status follows a little later. */
  #isLinked: boolean
  readonly #out: MessageLine
  readonly #in: MessageLine
  #cutTimer: Timer | null = null
  #pendingBytes = 0

  constructor(name: string, server: NatsServer, clock: Clock) {
    this.name = name
    this.#server = server
    this.#clock = clock
    this.#connection = { lost: () => this.#lose(), welcome: () => this.#comeBackLater() }
    this.#out = new MessageLine(server.clock)
    this.#in = new MessageLine(clock)
    this.#isLinked = server.up
    this.#status = server.up ? 'connected' : 'disconnected'
    server.addConnection(this.#connection)
  }

  publish(subject: string, data: Uint8Array): boolean {
    return this.#publish({ subject, data: data.slice(), replyTo: null })
  }

  subscribe(
    subject: string,
    handler: (message: Message) => void,
    options: { readonly queue?: string } = {},
  ): Subscription {
    return this.#subscribe(subject, options.queue ?? null, (wire) =>
      handler({
        subject: wire.subject,
        data: wire.data,
        respond: (data) => {
          if (wire.replyTo !== null) this.publish(wire.replyTo, data)
        },
      }),
    )
  }

  request(
    subject: string,
    data: Uint8Array,
    options: { readonly timeoutMs: number },
    onReply: (data: Uint8Array) => boolean,
  ): Promise<boolean> {
    return new Promise((resolve) => {
      const replyTo = this.#server.inbox()
      let timer: Timer | null = null
      const finish = (complete: boolean): void => {
        timer?.cancel()
        subscription.close()
        losses.close()
        resolve(complete)
      }
      const subscription = this.#subscribe(replyTo, null, (reply) => {
        if (onReply(reply.data)) finish(true)
      })
      const losses = this.onStatus(() => finish(false))
      timer = this.#clock.schedule(options.timeoutMs, () => finish(false))
      const sent = this.#publish({ subject, data: data.slice(), replyTo }, () => finish(false))
      if (!sent) finish(false)
    })
  }

  maxPayloadBytes(): number {
    return this.#server.maxPayloadBytes
  }

  status(): BroadcastStatus {
    return this.#status
  }

  onStatus(listener: (status: BroadcastStatus) => void): Subscription {
    this.#listeners.add(listener)
    return { close: () => this.#listeners.delete(listener) }
  }

  async close(): Promise<void> {
    if (this.#status === 'closed') return
    this.abandon()
    this.#setStatus('closed')
  }

  abandon(): void {
    this.#endConnection()
    this.#cutTimer?.cancel()
    this.#subscriptions.clear()
    this.#server.removeConnection(this.#connection)
  }

  disconnect(): void {
    this.#heldOff = true
    this.#lose()
  }

  reconnect(): void {
    this.#heldOff = false
    this.#clock.schedule(0, () => this.#comeBack())
  }

  cutOff({ requests, replies }: Cut): void {
    this.#out.cut(requests)
    this.#in.cut(replies)
    this.#cutTimer?.cancel()
    this.#cutTimer = this.#server.clock.schedule(PING_LIMIT_MS, () => this.#lose())
  }

  heal(): void {
    this.#out.cut(false)
    this.#in.cut(false)
    this.#cutTimer?.cancel()
    if (!this.#isLinked) this.#comeBackLater()
  }

  /** `unheard` is told when the message reached the server and nobody subscribes to it. */
  #publish(message: WireMessage, unheard: () => void = () => {}): boolean {
    if (this.#status !== 'connected') return false
    if (message.data.byteLength > this.#server.maxPayloadBytes) return false
    if (!this.#isLinked) return true
    if (this.#server.random.fraction() < this.faults.losePublishedChance) return true
    this.#upstream(() => {
      if (!this.#server.route(message)) this.#downstream(0, unheard)
    })
    return true
  }

  #subscribe(
    subject: string,
    queue: string | null,
    receive: (message: WireMessage) => void,
  ): Subscription {
    const subscription: ServerSubscription = {
      subject,
      queue,
      deliver: (message) => {
        if (this.#server.random.fraction() < this.faults.loseDeliveredChance) return
        this.#downstream(message.data.byteLength, () => {
          if (this.#subscriptions.has(subscription)) receive(message)
        })
      },
    }
    this.#subscriptions.add(subscription)
    if (this.#isLinked) this.#announce(subscription)
    return {
      close: () => {
        this.#subscriptions.delete(subscription)
        this.#upstream(() => this.#leaveServer(subscription))
      },
    }
  }

  #announce(subscription: ServerSubscription): void {
    this.#upstream(() => {
      if (this.#subscriptions.has(subscription)) this.#joinServer(subscription)
    })
  }

  #joinServer(subscription: ServerSubscription): void {
    this.#atServer.add(subscription)
    this.#server.subscribe(subscription)
  }

  #leaveServer(subscription: ServerSubscription): void {
    this.#atServer.delete(subscription)
    this.#server.unsubscribe(subscription)
  }

  /** Something on its way to the server, behind everything that this client sent before. */
  #upstream(arrive: () => void): void {
    this.#out.send(drawDelayMs(this.#server.random, this.faults.publishDelay), arrive)
  }

  /** Something on its way from the server. Too much of it unread, and the server hangs up. */
  #downstream(bytes: number, arrive: () => void): void {
    this.#pendingBytes += bytes
    if (this.#pendingBytes > this.#server.maxPendingBytes) {
      this.#lose()
      return
    }
    this.#in.send(drawDelayMs(this.#server.random, this.faults.deliverDelay), () => {
      this.#pendingBytes -= bytes
      arrive()
    })
  }

  /** The connection ends at the server at once; the process hears of it when it runs. */
  #lose(): void {
    if (!this.#isLinked) return
    this.#endConnection()
    this.#clock.schedule(0, () => {
      if (this.#isLinked || this.#status !== 'connected') return
      this.#setStatus('disconnected')
      this.#comeBackLater()
    })
  }

  #endConnection(): void {
    this.#isLinked = false
    this.#pendingBytes = 0
    this.#out.drop()
    this.#in.drop()
    for (const subscription of [...this.#atServer]) this.#leaveServer(subscription)
  }

  #comeBackLater(): void {
    const delayMs = this.#server.reconnectDelayMs * (0.5 + this.#server.random.fraction())
    this.#clock.schedule(delayMs, () => this.#comeBack())
  }

  /** Does nothing while it cannot: whatever stands in the way calls again when it is gone. */
  #comeBack(): void {
    const isCut = this.#out.isCut || this.#in.isCut
    if (this.#status !== 'disconnected' || this.#heldOff || isCut || !this.#server.up) return
    this.#isLinked = true
    for (const subscription of this.#subscriptions) this.#joinServer(subscription)
    this.#setStatus('connected')
  }

  #setStatus(status: BroadcastStatus): void {
    this.#status = status
    for (const listener of [...this.#listeners]) listener(status)
  }
}
