/**
 * NATS with nothing on top: the limit of the broadcast. Each message begins with its number. A subscriber
 * may also read what it gets, as any must that is to know what changed: that far nobody comes with less.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { machineMs } from '../dev/machine-time.ts'
import { type NatsLink, type NatsOptions, openNatsLink } from '../nats/nats-link.ts'
import { decodeFrame } from '../runtime/map-frames.ts'

const CONNECT_TIMEOUT_MS = 10_000
export const NUMBER_BYTES = 4

export type RawArrivals = readonly (readonly number[])[]

export class RawNats {
  private readonly link: NatsLink
  /** Arrival of each message, by its number, of each subscription. */
  private arrivals: number[][] = []

  constructor(options: NatsOptions) {
    this.link = openNatsLink(options)
  }

  /** @param reads whether a message's body is inflated and parsed before it counts as arrived */
  async subscribe(subject: string, count: number, reads = false): Promise<void> {
    const connection = await this.connected()
    this.arrivals = Array.from({ length: count }, () => [])
    for (const arrivals of this.arrivals) {
      connection.subscribe(subject, {
        callback: (_error, message) => {
          const { data } = message
          if (reads) JSON.parse(decodeFrame(data.subarray(NUMBER_BYTES)) ?? 'null')
          arrivals[Buffer.from(data).readUInt32LE(0)] = machineMs()
        },
      })
    }
    await connection.flush()
  }

  /**
   * Publishes these bodies one after the other, each in its parts; when the first part was sent.
   * @param due resolves when a body may go, as after the commit that it tells of
   */
  async publish(
    subject: string,
    bodies: readonly (readonly Uint8Array[])[],
    gapMs: number,
    due: () => Promise<void> = async () => {},
  ): Promise<readonly number[]> {
    const connection = await this.connected()
    const sentMs: number[] = []
    for (const [number, parts] of bodies.entries()) {
      const head = Buffer.alloc(NUMBER_BYTES)
      head.writeUInt32LE(number, 0)
      const messages = parts.map((part) => Buffer.concat([head, part]))
      await due()
      sentMs.push(machineMs())
      for (const message of messages) connection.publish(subject, message)
      await delay(gapMs)
    }
    await connection.flush()
    return sentMs
  }

  /** Of the last part of each. */
  arrived(): RawArrivals {
    return this.arrivals
  }

  forget(): void {
    for (const arrivals of this.arrivals) arrivals.length = 0
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
