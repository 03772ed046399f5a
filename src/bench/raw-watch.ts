/**
 * The watches of the limit, over either wire. *stub*: raw gRPC as the client library's stub gives it,
 * whose general decoder makes objects of every field; that is what a program has that talks to etcd and
 * does nothing else. *lean*: as Tenure reads and writes (`etcd/watch-wire.ts`, `transaction-wire.ts`),
 * which is stricter: it shows what the servers allow to whoever is as sparing as Tenure is.
 */
import type { IEvent, IWatchRequest, IWatchResponse } from 'etcd3'
import { encodeRange } from '../etcd/codec.ts'
import type { Connection } from '../etcd/connections.ts'
import { endStream, revisionOf } from '../etcd/watch.ts'
import type { WatchResponse } from '../etcd/watch-wire.ts'
import type { WatchEvent } from '../ports/store.ts'

export type Wire = 'stub' | 'lean'
export type RawEvents = readonly (IEvent | WatchEvent)[]

type Received = {
  readonly created: boolean
  readonly revision: number
  readonly events: RawEvents
}

type RawStream = {
  onResponse(listener: (response: Received) => void): void
  onError(listener: () => void): void
  end(): void
}

/** Sends the request at once. @param from 0: from now on */
export async function openRawStream(
  connection: Connection,
  wire: Wire,
  prefix: string,
  from: number,
): Promise<RawStream> {
  const { key, range_end: rangeEnd } = encodeRange(prefix)
  if (wire === 'lean') {
    const stream = await connection.channel.openWatch()
    stream.write({ key, rangeEnd, startRevision: from, progressNotify: false })
    return {
      onResponse: (listener) => stream.on('data', (response: WatchResponse) => listener(response)),
      onError: (listener) => stream.on('error', listener),
      end: () => endStream(stream),
    }
  }
  const stream = await connection.client.watchClient.watch({})
  const create_request: IWatchRequest['create_request'] = {
    ...{ key, range_end: rangeEnd },
    ...(from === 0 ? {} : { start_revision: from }),
  }
  stream.write({ create_request })
  return {
    onResponse: (listener) =>
      stream.on('data', ({ created, header, events }: IWatchResponse) =>
        listener({ created, revision: Number(header.revision), events }),
      ),
    onError: (listener) => stream.on('error', listener),
    end: () => endStream(stream),
  }
}

export function revisionOfEvent(event: RawEvents[number]): number {
  if ('kv' in event) return Number(event.kv.mod_revision)
  return revisionOf(event)
}

/** The partition that an event of a group's prefix is about; its key ends in six digits. */
export function partitionOfEvent(event: RawEvents[number]): number {
  if ('kv' in event) return Number(event.kv.key.toString('latin1', event.kv.key.length - 6))
  return Number((event.type === 'put' ? event.entry.key : event.key).slice(-6))
}
