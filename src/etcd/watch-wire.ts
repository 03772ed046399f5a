/**
 * Watch requests and responses as bytes (`etcdserverpb.WatchRequest`, `WatchResponse` and `mvccpb.Event`
 * of etcd's `rpc.proto` and `kv.proto`). Every member reads every change of its group, so this is where a
 * large group spends its time.
 */
import type { KeyValue } from '../core/transaction.ts'
import type { WatchEvent } from '../ports/store.ts'
import { readKeyValue } from './key-value-wire.ts'
import { HEADER_REVISION, LENGTH, tagOf, VARINT, WireReader } from './wire-reader.ts'
import { WireWriter } from './wire-writer.ts'

export type WatchResponse = {
  /** The server's revision when it sent this. */
  readonly revision: number
  readonly created: boolean
  readonly canceled: boolean
  /** 0: the watch was not canceled for a compaction. */
  readonly compactRevision: number
  readonly cancelReason: string
  readonly events: readonly WatchEvent[]
}

export type WatchRequest = {
  readonly key: Buffer
  readonly rangeEnd: Buffer
  /** 0: from now on. */
  readonly startRevision: number
  readonly progressNotify: boolean
}

/** @throws RangeError when the bytes end too early, or hold what is no field */
export function readWatchResponse(bytes: Buffer): WatchResponse {
  const reader = new WireReader(bytes)
  const response = {
    revision: 0,
    created: false,
    canceled: false,
    compactRevision: 0,
    cancelReason: '',
    events: [] as WatchEvent[],
  }
  while (reader.position < bytes.length) {
    const tag = reader.varint()
    switch (tag) {
      case tagOf(1, LENGTH):
        response.revision = reader.numberOf(HEADER_REVISION)
        break
      case tagOf(3, VARINT):
        response.created = reader.varint() !== 0
        break
      case tagOf(4, VARINT):
        response.canceled = reader.varint() !== 0
        break
      case tagOf(5, VARINT):
        response.compactRevision = reader.varint()
        break
      case tagOf(6, LENGTH):
        response.cancelReason = reader.text()
        break
      case tagOf(11, LENGTH):
        response.events.push(readEvent(reader))
        break
      default:
        reader.skip(tag)
    }
  }
  return response
}

export function writeWatchRequest(request: WatchRequest): Buffer {
  const writer = new WireWriter()
  writer.number(4, request.progressNotify ? 1 : 0)
  writer.number(3, request.startRevision)
  writer.raw(2, request.rangeEnd)
  writer.raw(1, request.key)
  writer.wrap(1, 0)
  return writer.message()
}

function readEvent(reader: WireReader): WatchEvent {
  const end = reader.end()
  let isDelete = false
  let entry: KeyValue = NO_ENTRY
  while (reader.position < end) {
    const tag = reader.varint()
    if (tag === tagOf(1, VARINT)) isDelete = reader.varint() !== 0
    else if (tag === tagOf(2, LENGTH)) entry = readKeyValue(reader)
    else reader.skip(tag)
  }
  if (!isDelete) return { type: 'put', entry }
  return { type: 'delete', key: entry.key, modRevision: entry.modRevision }
}

const NO_ENTRY: KeyValue = {
  ...{ key: '', value: '', createRevision: 0, modRevision: 0, session: null },
}
