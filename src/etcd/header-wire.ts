/** `etcdserverpb.ResponseHeader` of etcd's `rpc.proto` as bytes: the one field that counts here. */
import { tagOf, VARINT, type WireReader } from './wire-reader.ts'

/** The store's revision when the server answered. */
export function readHeaderRevision(reader: WireReader): number {
  const end = reader.end()
  let revision = 0
  while (reader.position < end) {
    const tag = reader.varint()
    if (tag === tagOf(3, VARINT)) revision = reader.varint()
    else reader.skip(tag)
  }
  return revision
}
