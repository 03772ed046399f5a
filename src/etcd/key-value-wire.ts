/** `mvccpb.KeyValue` of etcd's `kv.proto` as bytes. */
import type { SessionId } from '../core/ids.ts'
import type { KeyValue, ValueBytes } from '../core/transaction.ts'
import { LENGTH, tagOf, VARINT, type WireReader } from './wire-reader.ts'

/** An entry whose value stays bytes until somebody asks for its text. */
export class WireKeyValue implements KeyValue, ValueBytes {
  key = ''
  createRevision = 0
  modRevision = 0
  session: SessionId | null = null
  readonly buffer: Buffer
  from = 0
  to = 0

  constructor(buffer: Buffer) {
    this.buffer = buffer
  }

  get value(): string {
    return this.buffer.toString('utf8', this.from, this.to)
  }

  get bytes(): ValueBytes {
    return this
  }
}

export function readKeyValue(reader: WireReader): WireKeyValue {
  const end = reader.end()
  const entry = new WireKeyValue(reader.bytes)
  while (reader.position < end) {
    const tag = reader.varint()
    switch (tag) {
      case tagOf(1, LENGTH):
        entry.key = reader.text()
        break
      case tagOf(2, VARINT):
        entry.createRevision = reader.varint()
        break
      case tagOf(3, VARINT):
        entry.modRevision = reader.varint()
        break
      case tagOf(5, LENGTH):
        entry.to = reader.end()
        entry.from = reader.position
        reader.position = entry.to
        break
      case tagOf(6, VARINT):
        entry.session = reader.session()
        break
      default:
        reader.skip(tag)
    }
  }
  return entry
}

/** With its text, and without the bytes that it was read from. */
export function wholeEntry(entry: WireKeyValue): KeyValue {
  const { key, value, createRevision, modRevision, session } = entry
  return { key, value, createRevision, modRevision, session }
}
