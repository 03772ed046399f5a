/**
 * A client of the in-memory NATS: the broadcast port, and the switches by which a test or simulator
 * lets this one client lose messages.
 *
 *   connected -> disconnected   by `disconnect` (until `reconnect`), by the server going down or
 *                               by reading too slowly (until it has reconnected by itself)
 *   any -> closed
 *
 * Messages on the way when a connection ends are lost, and requests that wait for replies end.
 * Subscriptions stand at the server again before the status turns `connected`; what was published in
 * between is not delivered.
 */
import type { Broadcast, BroadcastStatus, Message, Subscription } from '../ports/broadcast.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { type BroadcastFaults, drawDelayMs, noBroadcastFaults } from './faults.ts'
import type {
  NatsServer,
  ServerConnection,
  ServerSubscription,
  WireMessage,
} from './nats-server.ts'

export interface MemoryBroadcast extends Broadcast {
  readonly name: string
  /** Chances and delays of this client; change its fields at any time. */
  readonly faults: BroadcastFaults
  /** Ends the connection until `reconnect`. */
  disconnect(): void
  reconnect(): void
}

export class ConnectedBroadcast implements MemoryBroadcast {
  readonly name: string
  readonly faults: BroadcastFaults = noBroadcastFaults()
  readonly #server: NatsServer
  readonly #clock: Clock
  readonly #connection: ServerConnection
  readonly #subscriptions = new Set<ServerSubscription>()
  readonly #listeners = new Set<(status: BroadcastStatus) => void>()
  #status: BroadcastStatus
  /** `disconnect` was called: it does not come back by itself. */
  #heldOff = false
  /** Rises whenever the connection ends; what was sent over an earlier one is lost. */
  #era = 0
  #lastPublishMs = 0
  #lastDeliveryMs = 0
  #pendingBytes = 0

  constructor(name: string, server: NatsServer, clock: Clock) {
    this.name = name
    this.#server = server
    this.#clock = clock
    this.#connection = { lost: () => this.#lose(), welcome: () => this.#comeBackLater() }
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
    this.#endConnection()
    this.#subscriptions.clear()
    this.#server.removeConnection(this.#connection)
    this.#setStatus('closed')
  }

  disconnect(): void {
    this.#heldOff = true
    this.#lose()
  }

  reconnect(): void {
    this.#heldOff = false
    this.#comeBack()
  }

  /** `unheard` is told when the message reached the server and nobody subscribes to it. */
  #publish(message: WireMessage, unheard: () => void = () => {}): boolean {
    if (this.#status !== 'connected') return false
    if (message.data.byteLength > this.#server.maxPayloadBytes) return false
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
    if (this.#status === 'connected') this.#announce(subscription)
    return {
      close: () => {
        this.#subscriptions.delete(subscription)
        this.#upstream(() => this.#server.unsubscribe(subscription))
      },
    }
  }

  #announce(subscription: ServerSubscription): void {
    this.#upstream(() => {
      if (this.#subscriptions.has(subscription)) this.#server.subscribe(subscription)
    })
  }

  /** Something on its way to the server, behind everything that this client sent before. */
  #upstream(arrive: () => void): void {
    const { clock, random } = this.#server
    const era = this.#era
    const arrivalMs = clock.monotonicMs() + drawDelayMs(random, this.faults.publishDelay)
    this.#lastPublishMs = Math.max(this.#lastPublishMs, arrivalMs)
    clock.schedule(this.#lastPublishMs - clock.monotonicMs(), () => {
      if (era === this.#era) arrive()
    })
  }

  /** Something on its way from the server. Too much of it unread, and the server hangs up. */
  #downstream(bytes: number, arrive: () => void): void {
    const { random } = this.#server
    const era = this.#era
    this.#pendingBytes += bytes
    if (this.#pendingBytes > this.#server.maxPendingBytes) {
      this.#endConnection()
      this.#clock.schedule(0, () => {
        this.#lose()
        this.#comeBackLater()
      })
      return
    }
    const nowMs = this.#clock.monotonicMs()
    const arrivalMs = nowMs + drawDelayMs(random, this.faults.deliverDelay)
    this.#lastDeliveryMs = Math.max(this.#lastDeliveryMs, arrivalMs)
    this.#clock.schedule(this.#lastDeliveryMs - nowMs, () => {
      if (era !== this.#era) return
      this.#pendingBytes -= bytes
      arrive()
    })
  }

  #lose(): void {
    if (this.#status !== 'connected') return
    this.#endConnection()
    this.#setStatus('disconnected')
  }

  #endConnection(): void {
    this.#era += 1
    this.#pendingBytes = 0
    for (const subscription of this.#subscriptions) this.#server.unsubscribe(subscription)
  }

  #comeBackLater(): void {
    const delayMs = this.#server.reconnectDelayMs * (0.5 + this.#server.random.fraction())
    this.#clock.schedule(delayMs, () => this.#comeBack())
  }

  #comeBack(): void {
    if (this.#status !== 'disconnected' || this.#heldOff || !this.#server.up) return
    for (const subscription of this.#subscriptions) this.#server.subscribe(subscription)
    this.#setStatus('connected')
  }

  #setStatus(status: BroadcastStatus): void {
    this.#status = status
    for (const listener of [...this.#listeners]) listener(status)
  }
}
