/**
 * The server side of the in-memory NATS: who subscribes to what, one member of a queue group at random,
 * and a bound on what a slow consumer may leave unread. Nothing is kept: a message without a subscriber
 * is gone.
 */
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { isPattern, subjectMatches } from './subject.ts'

export type WireMessage = {
  readonly subject: string
  readonly data: Uint8Array
  /** Where replies go; null: none is expected. */
  readonly replyTo: string | null
}

/** One subscription as the server sees it. */
export type ServerSubscription = {
  readonly subject: string
  readonly queue: string | null
  deliver(message: WireMessage): void
}

/** What the server can do to a client's connection. */
export type ServerConnection = { lost(): void; welcome(): void }

export class NatsServer {
  readonly clock: Clock
  readonly random: Random
  readonly maxPayloadBytes: number
  readonly maxPendingBytes: number
  readonly reconnectDelayMs: number
  #up = true
  #nextInbox = 1
  readonly #exact = new Map<string, Set<ServerSubscription>>()
  readonly #patterns = new Set<ServerSubscription>()
  readonly #connections = new Set<ServerConnection>()

  constructor(
    clock: Clock,
    random: Random,
    limits: {
      readonly maxPayloadBytes: number
      readonly maxPendingBytes: number
      readonly reconnectDelayMs: number
    },
  ) {
    this.clock = clock
    this.random = random
    this.maxPayloadBytes = limits.maxPayloadBytes
    this.maxPendingBytes = limits.maxPendingBytes
    this.reconnectDelayMs = limits.reconnectDelayMs
  }

  get up(): boolean {
    return this.#up
  }

  setUp(up: boolean): void {
    if (up === this.#up) return
    this.#up = up
    for (const connection of [...this.#connections]) {
      if (up) connection.welcome()
      else connection.lost()
    }
  }

  addConnection(connection: ServerConnection): void {
    this.#connections.add(connection)
  }

  removeConnection(connection: ServerConnection): void {
    this.#connections.delete(connection)
  }

  subscribe(subscription: ServerSubscription): void {
    if (isPattern(subscription.subject)) {
      this.#patterns.add(subscription)
      return
    }
    const others = this.#exact.get(subscription.subject)
    if (others === undefined) this.#exact.set(subscription.subject, new Set([subscription]))
    else others.add(subscription)
  }

  unsubscribe(subscription: ServerSubscription): void {
    this.#patterns.delete(subscription)
    const others = this.#exact.get(subscription.subject)
    others?.delete(subscription)
    if (others?.size === 0) this.#exact.delete(subscription.subject)
  }

  inbox(): string {
    const inbox = `_INBOX.${this.#nextInbox}`
    this.#nextInbox += 1
    return inbox
  }

  /** Hands the message to each subscriber and one member per queue group; false: there was nobody. */
  route(message: WireMessage): boolean {
    const queues = new Map<string, ServerSubscription[]>()
    let delivered = false
    for (const subscription of this.#matching(message.subject)) {
      delivered = true
      const { queue } = subscription
      if (queue === null) subscription.deliver(message)
      else queues.set(queue, [...(queues.get(queue) ?? []), subscription])
    }
    for (const members of queues.values()) {
      members[Math.floor(this.random.fraction() * members.length)]?.deliver(message)
    }
    return delivered
  }

  #matching(subject: string): ServerSubscription[] {
    const matching = [...(this.#exact.get(subject) ?? [])]
    for (const subscription of this.#patterns) {
      if (subjectMatches(subscription.subject, subject)) matching.push(subscription)
    }
    return matching
  }
}
