/**
 * Watch requests and responses as bytes (`etcdserverpb.WatchRequest`, `WatchResponse` and `mvccpb.Event`
 * of etcd's `rpc.proto` and `kv.proto`, protocol buffers version 3). Every member reads every change of
 * its group, so this is where a large group spends its time: read by a general decoder, with 64-bit
 * numbers as text and every field an object's, an event costs six times as much.
 *
 * Fields that are not needed here, of whatever number and wire type, are skipped.
 */
import type { SessionId } from '../core/ids.ts'
import type { KeyValue } from '../core/transaction.ts'
import type { WatchEvent } from '../ports/store.ts'

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

const VARINT = 0
const EIGHT_BYTES = 1
const LENGTH = 2
const FOUR_BYTES = 5

/** @throws RangeError when the bytes end too early, or hold what is no field */
export function readWatchResponse(bytes: Buffer): WatchResponse {
  const reader = new WireReader(bytes)
  const response = {
    ...{ revision: 0, created: false, canceled: false },
    ...{ compactRevision: 0, cancelReason: '' },
    events: [] as WatchEvent[],
  }
  while (reader.position < bytes.length) {
    const tag = reader.varint()
    switch (tag) {
      case tagOf(1, LENGTH):
        response.revision = readHeaderRevision(reader)
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
  const create = Buffer.concat([
    ...[writeVarint(tagOf(1, LENGTH)), writeBytes(request.key)],
    ...[writeVarint(tagOf(2, LENGTH)), writeBytes(request.rangeEnd)],
    ...[writeVarint(tagOf(3, VARINT)), writeVarint(request.startRevision)],
    ...[writeVarint(tagOf(4, VARINT)), writeVarint(request.progressNotify ? 1 : 0)],
  ])
  return Buffer.concat([writeVarint(tagOf(1, LENGTH)), writeBytes(create)])
}

function readHeaderRevision(reader: WireReader): number {
  const end = reader.end()
  let revision = 0
  while (reader.position < end) {
    const tag = reader.varint()
    if (tag === tagOf(3, VARINT)) revision = reader.varint()
    else reader.skip(tag)
  }
  return revision
}

function readEvent(reader: WireReader): WatchEvent {
  const end = reader.end()
  let isDelete = false
  let entry = NO_ENTRY
  while (reader.position < end) {
    const tag = reader.varint()
    if (tag === tagOf(1, VARINT)) isDelete = reader.varint() !== 0
    else if (tag === tagOf(2, LENGTH)) entry = readKeyValue(reader)
    else reader.skip(tag)
  }
  if (!isDelete) return { type: 'put', entry }
  return { type: 'delete', key: entry.key, modRevision: entry.modRevision }
}

function readKeyValue(reader: WireReader): KeyValue {
  const end = reader.end()
  let key = ''
  let value = ''
  let createRevision = 0
  let modRevision = 0
  let session: SessionId | null = null
  while (reader.position < end) {
    const tag = reader.varint()
    switch (tag) {
      case tagOf(1, LENGTH):
        key = reader.text()
        break
      case tagOf(2, VARINT):
        createRevision = reader.varint()
        break
      case tagOf(3, VARINT):
        modRevision = reader.varint()
        break
      case tagOf(5, LENGTH):
        value = reader.text()
        break
      case tagOf(6, VARINT):
        session = sessionOf(reader.wideVarint())
        break
      default:
        reader.skip(tag)
    }
  }
  return { key, value, createRevision, modRevision, session }
}

const NO_ENTRY: KeyValue = {
  ...{ key: '', value: '', createRevision: 0, modRevision: 0, session: null },
}

/** Lease 0 is none. */
function sessionOf(lease: bigint): SessionId | null {
  return lease === 0n ? null : (lease.toString(16).padStart(16, '0') as SessionId)
}

function tagOf(field: number, wireType: number): number {
  return (field << 3) | wireType
}

class WireReader {
  position = 0
  private readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** Exact up to 2^53; revisions get there in a few million years. */
  varint(): number {
    let byte = this.byte()
    let value = byte & 0x7f
    let factor = 0x80
    while (byte >= 0x80) {
      byte = this.byte()
      value += (byte & 0x7f) * factor
      factor *= 0x80
    }
    return value
  }

  /** All 64 bits, without sign. */
  wideVarint(): bigint {
    let value = 0n
    let shift = 0n
    let byte = 0x80
    while (byte >= 0x80) {
      byte = this.byte()
      value |= BigInt(byte & 0x7f) << shift
      shift += 7n
    }
    return BigInt.asUintN(64, value)
  }

  /** Where the field of a length ends that begins here. */
  end(): number {
    const length = this.varint()
    const end = this.position + length
    if (end > this.bytes.length) throw new RangeError('a field is longer than the message')
    return end
  }

  text(): string {
    const end = this.end()
    const text = this.bytes.toString('utf8', this.position, end)
    this.position = end
    return text
  }

  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        this.varint()
        return
      case EIGHT_BYTES:
        this.position += 8
        return
      case LENGTH:
        this.position = this.end()
        return
      case FOUR_BYTES:
        this.position += 4
        return
      default:
        throw new RangeError(`wire type ${tag & 7} is none of a field's`)
    }
  }

  private byte(): number {
    const byte = this.bytes[this.position]
    if (byte === undefined) throw new RangeError('the message ends within a field')
    this.position += 1
    return byte
  }
}

function writeBytes(bytes: Buffer): Buffer {
  return Buffer.concat([writeVarint(bytes.length), bytes])
}

function writeVarint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}
