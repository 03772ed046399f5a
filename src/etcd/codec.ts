/**
 * Tenure's keys, ranges and lease ids in etcd's terms and back. Keys and values are UTF-8;
 * 64-bit numbers are decimal strings on etcd's side; revisions fit a JavaScript number for the next
 * few million years, lease ids do not and are hexadecimal strings here.
 */
import type { IKeyValue } from 'etcd3'
import type { SessionId } from '../core/ids.ts'
import type { KeyValue } from '../core/transaction.ts'

export function decodeKeyValue(entry: IKeyValue): KeyValue {
  return {
    key: entry.key.toString('utf8'),
    value: entry.value.toString('utf8'),
    createRevision: Number(entry.create_revision),
    modRevision: Number(entry.mod_revision),
    session: decodeLease(entry.lease),
  }
}

export function encodeLease(session: SessionId): string {
  return BigInt(`0x${session}`).toString()
}

export function encodeKey(key: string): Buffer {
  return Buffer.from(key, 'utf8')
}

/** The first key after all keys that start with the prefix; the empty prefix means every key. */
export function encodeRange(prefix: string, after?: string): { key: Buffer; range_end: Buffer } {
  const start = after === undefined ? prefix : `${after}\0`
  return {
    key: start === '' ? Buffer.from([0]) : encodeKey(start),
    range_end: endOfPrefix(encodeKey(prefix)),
  }
}

function decodeLease(lease: string): SessionId | null {
  if (lease === '0') return null
  return BigInt.asUintN(64, BigInt(lease)).toString(16).padStart(16, '0') as SessionId
}

function endOfPrefix(prefix: Buffer): Buffer {
  for (let index = prefix.length - 1; index >= 0; index--) {
    const byte = prefix[index] ?? 0xff
    if (byte < 0xff) return Buffer.concat([prefix.subarray(0, index), Buffer.from([byte + 1])])
  }
  // No key is beyond the last prefix: etcd reads a zero byte as "to the end".
  return Buffer.from([0])
}
