/**
 * Publishes keyed orders, each partition's turn coming round, until SIGTERM. What the stream acknowledged
 * is appended to a file: the list that nothing may be missing from. Of what was given up, or is under way
 * at the end, nothing is said.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { createPublisher } from '../../src/composition/work.ts'
import { partitionOf } from '../../src/core/partition-key.ts'

export type ProducerInput = {
  readonly nats: readonly string[]
  readonly prefix: string
  readonly partitions: number
  readonly perSecond: number
  readonly listFile: string
  /** Of so many orders one keeps its worker busy beyond a drain's deadline. */
  readonly stuckEvery: number
}

/** An acknowledged order, as `tenure verify` reads it. */
export type PublishedOrder = {
  readonly input: string
  readonly key: string
  readonly partition: number
  readonly sequence: number
}

export type OrderBody = { readonly stuck: boolean }

const TICK_MS = 20
const UNDER_WAY_MAX = 500
const KEYS_PER_PARTITION = 4

const input = JSON.parse(process.argv[2] ?? '{}') as ProducerInput
const publisher = await createPublisher({
  ...{ nats: { servers: input.nats }, prefix: input.prefix, partitions: input.partitions },
})
const list = openSync(input.listFile, 'a')
const keys = keysInTurn(input.partitions)
let stopping = false
process.once('SIGTERM', () => {
  stopping = true
})
let underWay = 0
const startMs = performance.now()
for (let number = 0; !stopping; ) {
  const wanted = ((performance.now() - startMs) / 1000) * input.perSecond
  // What an outage held up is not made up for.
  for (; number < wanted; number += 1) if (underWay < UNDER_WAY_MAX) publish(number)
  await delay(TICK_MS)
}
await publisher.idle()
closeSync(list)
await publisher.close()
process.exit(0)

function publish(number: number): void {
  const key = keys[number % keys.length] ?? ''
  const order = `order-${number}`
  const body: OrderBody = { stuck: number % input.stuckEvery === input.stuckEvery - 1 }
  underWay += 1
  publisher
    .publish(key, JSON.stringify(body), { messageId: order })
    .then(
      ({ partition, sequence }) => {
        const published: PublishedOrder = { input: order, key, partition, sequence }
        writeSync(list, `${JSON.stringify(published)}\n`)
      },
      (error: unknown) => console.log(String(error)),
    )
    .finally(() => {
      underWay -= 1
    })
}

/** A partition's next key comes when every other partition had one. */
function keysInTurn(partitions: number): readonly string[] {
  const found = Array.from({ length: partitions }, () => [] as string[])
  for (let number = 0, full = 0; full < partitions; number += 1) {
    const key = `customer-${number}`
    const ofPartition = found[partitionOf(key, partitions)]
    if (ofPartition === undefined || ofPartition.length === KEYS_PER_PARTITION) continue
    ofPartition.push(key)
    if (ofPartition.length === KEYS_PER_PARTITION) full += 1
  }
  return Array.from({ length: KEYS_PER_PARTITION }, (_, turn) =>
    found.map((ofPartition) => ofPartition[turn] ?? ''),
  ).flat()
}
