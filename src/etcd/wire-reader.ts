/**
 * Protocol buffers (version 3) read field by field, for the few messages that every member reads again
 * and again: read by a general decoder, with 64-bit numbers as text and every field an object's, an event
 * costs six times as much. Whoever reads a message skips the fields that it does not need, of whatever
 * number and wire type.
 */
import type { SessionId } from '../core/ids.ts'

export const VARINT = 0
const EIGHT_BYTES = 1
export const LENGTH = 2
const FOUR_BYTES = 5
/** Field of `etcdserverpb.ResponseHeader`: the store's revision when the server answered. */
export const HEADER_REVISION = 3

export function tagOf(field: number, wireType: number): number {
  return (field << 3) | wireType
}

/** Methods throw RangeError where the bytes end too early, or hold what is no field. */
export class WireReader {
  position = 0
  readonly bytes: Buffer

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

  /** A lease's id, all 64 bits of it; 0 is none. */
  session(): SessionId | null {
    let lease = 0n
    let shift = 0n
    let byte = 0x80
    while (byte >= 0x80) {
      byte = this.byte()
      lease |= BigInt(byte & 0x7f) << shift
      shift += 7n
    }
    if (lease === 0n) return null
    return BigInt.asUintN(64, lease).toString(16).padStart(16, '0') as SessionId
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

  /** Of the message that begins here, this number and nothing else; 0 is left out on the wire. */
  numberOf(field: number): number {
    const end = this.end()
    let value = 0
    while (this.position < end) {
      const tag = this.varint()
      if (tag === tagOf(field, VARINT)) value = this.varint()
      else this.skip(tag)
    }
    return value
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
