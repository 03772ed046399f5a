/**
 * Protocol buffers (version 3) written back to front: the last field first, and a nested message's length
 * once all of it stands behind. So no message is measured before it is written, and nothing is written twice.
 */
import type { SessionId } from '../core/ids.ts'
import { LENGTH, tagOf, VARINT } from './wire-reader.ts'

const FIRST_SIZE = 16 * 1024
/** Texts up to this length, as keys are, are written here; the engine's own way pays for longer ones. */
const SHORT_MAX = 64
/** A tag and a length take ten bytes at most each. */
const HEAD_MAX = 20
const HALF = 2 ** 32

export class WireWriter {
  private bytes = Buffer.allocUnsafe(FIRST_SIZE)
  /** Where the first byte written stands. */
  private at = FIRST_SIZE

  /** Number of bytes written so far. */
  get written(): number {
    return this.bytes.length - this.at
  }

  /** Forgets what was written. */
  begin(): void {
    this.at = this.bytes.length
  }

  /** What was written, as bytes of its own. */
  message(): Buffer {
    return Buffer.from(this.bytes.subarray(this.at))
  }

  text(field: number, value: string): void {
    if (value.length <= SHORT_MAX && this.shortText(value)) {
      this.head(field, value.length)
      return
    }
    const length = Buffer.byteLength(value)
    this.reserve(length)
    this.at -= length
    this.bytes.write(value, this.at)
    this.head(field, length)
  }

  /** False when it is not ASCII: then nothing is written. */
  private shortText(value: string): boolean {
    this.reserve(value.length)
    const from = this.at - value.length
    for (let index = 0; index < value.length; index += 1) {
      const unit = value.charCodeAt(index)
      if (unit >= 0x80) return false
      this.bytes[from + index] = unit
    }
    this.at = from
    return true
  }

  raw(field: number, value: Buffer): void {
    this.reserve(value.length)
    this.at -= value.length
    this.bytes.set(value, this.at)
    this.head(field, value.length)
  }

  /** A whole number below 2^53, or an enumeration's. */
  number(field: number, value: number): void {
    this.reserve(0)
    this.varint(value)
    this.varint(tagOf(field, VARINT))
  }

  /** As the 64-bit number that the lease's id is. */
  session(field: number, value: SessionId): void {
    this.reserve(0)
    this.wideVarint(Number.parseInt(value.slice(0, 8), 16), Number.parseInt(value.slice(8), 16))
    this.varint(tagOf(field, VARINT))
  }

  /** All that was written since, as one field. */
  wrap(field: number, since: number): void {
    this.reserve(0)
    this.head(field, this.written - since)
  }

  private head(field: number, length: number): void {
    this.varint(length)
    this.varint(tagOf(field, LENGTH))
  }

  private varint(value: number): void {
    let size = 1
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1
    this.at -= size
    let rest = value
    for (let at = this.at; at < this.at + size - 1; at += 1) {
      this.bytes[at] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.bytes[this.at + size - 1] = rest
  }

  private wideVarint(high: number, low: number): void {
    const groups: number[] = []
    let [upper, lower] = [high, low]
    while (upper > 0 || lower >= 0x80) {
      groups.push((lower & 0x7f) | 0x80)
      lower = Math.floor(lower / 0x80) + (upper % 0x80) * (HALF / 0x80)
      upper = Math.floor(upper / 0x80)
    }
    groups.push(lower)
    this.at -= groups.length
    this.bytes.set(groups, this.at)
  }

  private reserve(length: number): void {
    const needed = length + HEAD_MAX
    if (needed <= this.at) return
    const larger = Buffer.allocUnsafe(this.bytes.length * 2 + needed)
    const { written } = this
    this.bytes.copy(larger, larger.length - written, this.at)
    this.bytes = larger
    this.at = larger.length - written
  }
}
