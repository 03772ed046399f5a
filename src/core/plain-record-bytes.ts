/**
 * A plain record read off its bytes (`plain-record.ts` says what one is), without a parser: of all that a member
 * reads on its watch, nearly everything is such records of others. What is not ASCII, or not as this build writes
 * it, is none here, and the text is decoded.
 *
 *   {"v":1,"phase":"owned","incarnation":I,"generation":G,"owner":{"member":"M","session":"S"},"how":"H",
 *    "previous":null | {"member":"M","session":"S","incarnation":I,"generation":G-1},"operation":"16 hex","atMs":T}
 *
 * and a revoking one with `,"move":{"id":"..","to":null | "M","reason":"..","by":"..","rewrites":N,"atMs":T}`
 * before its end.
 */
import type { MemberName, SessionId } from './ids.ts'
import type { MoveReason, Owner, PendingMove } from './partition-record.ts'
import { GRANT_KINDS, type PlainRecord } from './plain-record.ts'
import type { KeyValue, ValueBytes } from './transaction.ts'

const literal = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0))

const HEAD = literal('{"v":1,"phase":"')
const OWNED = literal('owned')
const REVOKING = literal('revoking')
const GENERATION = literal(',"generation":')
const OWNER = literal(',"owner":{"member":"')
const SESSION = literal('","session":"')
const HOW = literal('"},"how":"')
const KINDS = GRANT_KINDS.map((kind) => literal(kind))
const PREVIOUS = literal('","previous":')
const NOBODY = literal('null')
const MEMBER = literal('{"member":"')
const INCARNATION = literal('","incarnation":')
const END = literal('}')
const OPERATION = literal(',"operation":"')
const AT = literal('","atMs":')
const MOVE = literal(',"move":{"id":"')
const TO = literal('","to":')
const QUOTE_MARK = literal('"')
const TO_NOBODY = literal('null,"reason":"')
const REASON = literal('","reason":"')
const BY = literal('","by":"')
const REWRITES = literal('","rewrites":')
const MOVE_AT = literal(',"atMs":')

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NOUGHT = 0x30
const LOWER_A = 0x61
const DIGITS_MAX = 15
const NAMES_MAX = 4096
const TEXT_MAX = 1024

/** Null for any other value, whether a record or not. */
export function readPlainRecord(entry: Pick<KeyValue, 'value' | 'bytes'>): PlainRecord | null {
  const bytes = entry.bytes ?? bytesOf(entry.value)
  if (bytes === null) return null
  reader.begin(bytes)
  return reader.record()
}

const encoder = new TextEncoder()
const encoded = new Uint8Array(TEXT_MAX)

/** Good until the next text; null: too long for a plain record. */
function bytesOf(text: string): ValueBytes | null {
  const { read, written } = encoder.encodeInto(text, encoded)
  return read < text.length ? null : { buffer: encoded, from: 0, to: written }
}

type KnownOwner = { readonly owner: Owner; readonly bytes: Uint8Array }

class RecordReader {
  private buffer: Uint8Array = HEAD
  private at = 0
  private to = 0
  private isSound = true
  /** By a hash of their bytes; of two with the same one the later stays. */
  private readonly names = new Map<number, string>()
  private readonly owners = new Map<number, KnownOwner>()

  begin({ buffer, from, to }: ValueBytes): void {
    this.buffer = buffer
    this.at = from
    this.to = to
    this.isSound = true
  }

  record(): PlainRecord | null {
    this.expect(HEAD)
    const isOwned = this.skip(OWNED)
    if (!isOwned && !this.skip(REVOKING)) return null
    this.expect(INCARNATION)
    const incarnation = this.whole()
    this.expect(GENERATION)
    const generation = this.whole()
    this.expect(OWNER)
    const owner = this.owner()
    this.expect(HOW)
    const kind = KINDS.findIndex((one) => this.skip(one))
    this.expect(PREVIOUS)
    if (!this.isSound || kind < 0) return null
    const previous = this.skip(NOBODY) ? null : this.previous(incarnation, generation)
    this.expect(OPERATION)
    const high = this.fourBytes()
    const low = this.fourBytes()
    this.expect(AT)
    const atMs = this.whole()
    const move = isOwned || !this.isSound ? null : this.move()
    this.expect(END)
    if (!this.isSound || this.at !== this.to) return null
    return { incarnation, generation, owner, previous, kind, high, low, atMs, move }
  }

  private previous(incarnation: number, generation: number): Owner {
    this.expect(MEMBER)
    const owner = this.owner()
    this.expect(INCARNATION)
    if (this.whole() !== incarnation) this.isSound = false
    this.expect(GENERATION)
    if (this.whole() !== generation - 1) this.isSound = false
    this.expect(END)
    return owner
  }

  private move(): PendingMove {
    this.expect(MOVE)
    const id = this.name()
    this.expect(TO)
    const to = this.target()
    const reason = this.name() as MoveReason
    this.expect(BY)
    const by = this.name()
    this.expect(REWRITES)
    const rewrites = this.whole()
    this.expect(MOVE_AT)
    const atMs = this.whole()
    this.expect(END)
    return { id, to, reason, by, rewrites, atMs }
  }

  /** With what leads to the reason. */
  private target(): MemberName | null {
    if (this.skip(TO_NOBODY)) return null
    this.expect(QUOTE_MARK)
    const to = this.name() as MemberName
    this.expect(REASON)
    return to
  }

  /** Both names, from the first of a member's to the last of its session's; one object for all that are alike. */
  private owner(): Owner {
    const from = this.at
    const memberHash = this.hashToQuote()
    const memberTo = this.at
    this.expect(SESSION)
    const sessionFrom = this.at
    // A whole number of 32 bits: as a key, any other is looked up many times slower.
    const hash = (Math.imul(memberHash, 31) + this.hashToQuote()) | 0
    if (!this.isSound) return NO_OWNER
    const known = this.owners.get(hash)
    if (known !== undefined && this.stood(known.bytes, from)) return known.owner
    const member = this.text(from, memberTo) as MemberName
    const owner = { member, session: this.text(sessionFrom, this.at) as SessionId }
    if (this.owners.size >= NAMES_MAX) this.owners.clear()
    this.owners.set(hash, { owner, bytes: Uint8Array.from(this.buffer.subarray(from, this.at)) })
    return owner
  }

  /** Whether exactly these bytes were read since. */
  private stood(bytes: Uint8Array, from: number): boolean {
    return bytes.length === this.at - from && this.has(bytes, from)
  }

  /** Up to the quote; one string for all that are alike. */
  private name(): string {
    const from = this.at
    const hash = this.hashToQuote()
    if (!this.isSound) return ''
    const known = this.names.get(hash)
    if (known !== undefined && this.stands(known, from)) return known
    const name = this.text(from, this.at)
    if (this.names.size >= NAMES_MAX) this.names.clear()
    this.names.set(hash, name)
    return name
  }

  private stands(text: string, from: number): boolean {
    if (text.length !== this.at - from) return false
    for (let index = 0; index < text.length; index += 1) {
      if (text.charCodeAt(index) !== this.buffer[from + index]) return false
    }
    return true
  }

  private text(from: number, to: number): string {
    let text = ''
    for (let at = from; at < to; at += 1) text += String.fromCharCode(this.buffer[at] as number)
    return text
  }

  private expect(bytes: Uint8Array): void {
    if (!this.skip(bytes)) this.isSound = false
  }

  private skip(bytes: Uint8Array): boolean {
    if (!this.has(bytes, this.at)) return false
    this.at += bytes.length
    return true
  }

  private has(bytes: Uint8Array, at: number): boolean {
    const { buffer } = this
    for (let index = 0; index < bytes.length; index += 1) {
      if (buffer[at + index] !== bytes[index]) return false
    }
    return true
  }

  /** As JSON has it: no nought before other digits. */
  private whole(): number {
    const from = this.at
    let value = 0
    let at = from
    for (; at < this.to; at += 1) {
      const digit = (this.buffer[at] as number) - NOUGHT
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
    }
    const digits = at - from
    const isPadded = digits > 1 && this.buffer[from] === NOUGHT
    if (digits === 0 || digits > DIGITS_MAX || isPadded) this.isSound = false
    this.at = at
    return value
  }

  private hashToQuote(): number {
    let hash = 0
    let at = this.at
    for (; at < this.to; at += 1) {
      const byte = this.buffer[at] as number
      if (byte === QUOTE) break
      if (byte < 0x20 || byte >= 0x80 || byte === BACKSLASH) this.isSound = false
      hash = (Math.imul(hash, 31) + byte) | 0
    }
    this.at = at
    return hash
  }

  private fourBytes(): number {
    let value = 0
    const end = this.at + 8
    for (; this.at < end; this.at += 1) {
      const byte = this.buffer[this.at] as number
      const digit = byte < LOWER_A ? byte - NOUGHT : byte - LOWER_A + 10
      const isHex = byte < LOWER_A ? digit >= 0 && digit <= 9 : digit <= 15
      if (!isHex) this.isSound = false
      value = value * 16 + digit
    }
    return value
  }
}

const NO_OWNER: Owner = { member: '' as MemberName, session: '' as SessionId }
const reader = new RecordReader()
