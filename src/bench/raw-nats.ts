/** NATS with nothing on top: the limit of the broadcast. Each message begins with its number. */
import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { machineMs } from '../dev/machine-time.ts'
import { type NatsLink, type NatsOptions, openNatsLink } from '../nats/nats-link.ts'

const CONNECT_TIMEOUT_MS = 10_000
const NUMBER_BYTES = 4

export type RawArrivals = readonly (readonly number[])[]

export class RawNats {
  private readonly link: NatsLink
  /** Arrival of each message, by its number, of each subscription. */
  private arrivals: number[][] = []

  constructor(options: NatsOptions) {
    this.link = openNatsLink(options)
  }

  async subscribe(subject: string, count: number): Promise<void> {
    const connection = await this.connected()
    this.arrivals = Array.from({ length: count }, () => [])
    for (const arrivals of this.arrivals) {
      connection.subscribe(subject, {
        callback: (_error, message) => {
          arrivals[Buffer.from(message.data).readUInt32LE(0)] = machineMs()
        },
      })
    }
    await connection.flush()
  }

  /** Publishes messages of these sizes one after the other; when each was sent. */
  async publish(
    subject: string,
    sizes: readonly number[],
    gapMs: number,
  ): Promise<readonly number[]> {
    const connection = await this.connected()
    const sentMs: number[] = []
    for (const [number, size] of sizes.entries()) {
      const data = Buffer.alloc(Math.max(NUMBER_BYTES, size), 120)
      data.writeUInt32LE(number, 0)
      sentMs.push(machineMs())
      connection.publish(subject, data)
      await delay(gapMs)
    }
    await connection.flush()
    return sentMs
  }

  arrived(): RawArrivals {
    return this.arrivals
  }

  close(): Promise<void> {
    return this.link.close()
  }

  private async connected(): Promise<NatsConnection> {
    await this.link.waitConnected(CONNECT_TIMEOUT_MS)
    const connection = this.link.connection()
    if (connection === null) throw new Error('NATS is not to be had')
    return connection
  }
}
