/**
 * One NATS server in memory, on virtual time: core publish/subscribe and request/reply, nothing kept.
 */
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { ConnectedBroadcast, type MemoryBroadcast } from './memory-broadcast.ts'
import { NatsServer } from './nats-server.ts'

export interface MemoryNats {
  /**
   * A client of its own. With the clock of a process it reads nothing while that process is paused,
   * and is dropped as a slow consumer once too much has gathered.
   */
  connect(name: string, options?: { readonly clock?: Clock }): MemoryBroadcast
  /** Every client loses its connection. */
  stop(): void
  /** Clients come back by themselves, each a little later. */
  start(): void
}

export type MemoryNatsOptions = {
  readonly clock: Clock
  readonly random: Random
  /** Largest message; default 1 MiB. */
  readonly maxPayloadBytes?: number
  /** What may wait for a slow consumer before the server drops it; default 8 MiB. */
  readonly maxPendingBytes?: number
  /** About how long a client needs to come back; default 500 ms, half to one and a half of it. */
  readonly reconnectDelayMs?: number
}

/**
 * @example
 * const nats = createMemoryNats({ clock, random: createSeededRandom(1) })
 * const [a, b] = [nats.connect('a'), nats.connect('b')]
 * b.subscribe('orders.*', (message) => console.log(message.subject))
 * await clock.advance(10) // the subscription travels to the server
 * a.publish('orders.7', new Uint8Array())
 * await clock.advance(10)
 */
export function createMemoryNats(options: MemoryNatsOptions): MemoryNats {
  const { clock, random } = options
  const server = new NatsServer(clock, random, {
    maxPayloadBytes: options.maxPayloadBytes ?? 1_048_576,
    maxPendingBytes: options.maxPendingBytes ?? 8_388_608,
    reconnectDelayMs: options.reconnectDelayMs ?? 500,
  })
  return {
    connect: (name, client = {}) => new ConnectedBroadcast(name, server, client.clock ?? clock),
    stop: () => server.setUp(false),
    start: () => server.setUp(true),
  }
}
