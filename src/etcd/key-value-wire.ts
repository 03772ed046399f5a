/** `mvccpb.KeyValue` of etcd's `kv.proto` as bytes. */
import type { SessionId } from '../core/ids.ts'
import type { KeyValue } from '../core/transaction.ts'
import { LENGTH, tagOf, VARINT, type WireReader } from './wire-reader.ts'

export function readKeyValue(reader: WireReader): KeyValue {
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
        session = reader.session()
        break
      default:
        reader.skip(tag)
    }
  }
  return { key, value, createRevision, modRevision, session }
}
