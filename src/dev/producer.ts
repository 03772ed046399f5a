/**
 * The producer process of the demo: keyed orders into JetStream, each on its partition's subject. What
 * the stream acknowledged is appended to a file: the list that nothing may be missing from.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { partitionOf } from '../core/partition-key.ts'
import { jetStreamOver } from '../nats/jetstream.ts'
import { openNatsLink } from '../nats/nats-link.ts'

export const ORDERS_STREAM = 'TENURE_DEMO_ORDERS'

export function ordersSubject(partition: number): string {
  return `tenure.demo.orders.${partition}`
}

/** An acknowledged input, as `tenure verify` reads it. */
export type PublishedOrder = {
  /** The order's id. */
  readonly input: string
  readonly key: string
  readonly partition: number
  readonly sequence: number
}

export type ProducerOptions = {
  readonly nats: readonly string[]
  readonly partitions: number
  readonly ordersPerSecond: number
  readonly keys: number
  readonly listFile: string
}

const TICK_MS = 20

/** Publishes until SIGTERM; everything sent is acknowledged or given up before it ends. */
export async function runProducer(options: ProducerOptions): Promise<void> {
  const link = openNatsLink({ servers: options.nats, name: 'tenure-demo-producer' })
  const stream = jetStreamOver(link)
  const list = openSync(options.listFile, 'a')
  let stopping = false
  process.once('SIGTERM', () => {
    stopping = true
  })
  const publish = async (number: number) => {
    const key = `customer-${(number * 7919) % options.keys}`
    const partition = partitionOf(key, options.partitions)
    const order = `${process.pid}-${number}`
    const data = new TextEncoder().encode(JSON.stringify({ order, key }))
    for (;;) {
      const outcome = await stream.publish(ordersSubject(partition), data, { messageId: order })
      if (outcome.ok) {
        const { sequence } = outcome
        const published: PublishedOrder = { input: order, key, partition, sequence }
        writeSync(list, `${JSON.stringify(published)}\n`)
        return
      }
      // What was certainly not sent may be dropped at the end; an unknown outcome is settled.
      if (stopping && outcome.reason === 'not-sent') return
      await delay(100)
    }
  }
  const underWay = new Set<Promise<void>>()
  const startMs = performance.now()
  for (let number = 0; !stopping; ) {
    const wanted = ((performance.now() - startMs) / 1000) * options.ordersPerSecond
    for (; number < wanted && underWay.size < 1000; number += 1) {
      const one: Promise<void> = publish(number).finally(() => underWay.delete(one))
      underWay.add(one)
    }
    await delay(TICK_MS)
  }
  await Promise.all(underWay)
  closeSync(list)
  await link.close()
}

export function readPublished(listFile: string): readonly PublishedOrder[] {
  return readFileSync(listFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as PublishedOrder)
}
