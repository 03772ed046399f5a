/** A real nats-server with the work's streams, and messages in them. */
import {
  type ConnectedStreams,
  connectStreams,
  createPublisher,
  type DeadLetter,
  ensureWorkStreams,
  readDeadLetter,
} from '../../src/composition/work.ts'
import type { NatsServer } from '../../src/dev/servers.ts'
import { type CleanUp, startNats } from '../support/servers.ts'

export const PREFIX = 'orders'

export type StreamsWorld = {
  readonly nats: NatsServer
  readonly streams: ConnectedStreams
  /** Publishes to the one partition: the keys in turn, ids rising. */
  publish(keys: readonly string[], count: number): Promise<void>
  /** The letters so far. */
  letters(count: number): Promise<readonly DeadLetter[]>
}

export async function startStreamsWorld(cleanUp: CleanUp): Promise<StreamsWorld> {
  const nats = await startNats(cleanUp, { jetStream: true })
  const streams = await connectStreams({ nats: { servers: [nats.url] } })
  cleanUp.after(() => streams.close())
  await ensureWorkStreams(streams, { prefix: PREFIX })
  const publisher = await createPublisher({ streams, prefix: PREFIX, partitions: 1 })
  let published = 0
  return {
    nats,
    streams,
    async publish(keys, count) {
      const all = Array.from({ length: count }, (_, index) => {
        published += 1
        const key = keys[index % keys.length] ?? ''
        return publisher.publish(key, String(published), { messageId: `m-${published}` })
      })
      await Promise.all(all)
    },
    async letters(count) {
      const stop = new AbortController()
      const limit = setTimeout(() => stop.abort(), 10_000)
      const letters: DeadLetter[] = []
      const from = { stream: `${PREFIX}_dead`, subject: `${PREFIX}.dead`, fromSequence: 1 }
      for await (const { data } of streams.read({ ...from, signal: stop.signal })) {
        letters.push(readDeadLetter(data))
        if (letters.length === count) break
      }
      clearTimeout(limit)
      return letters
    },
  }
}
