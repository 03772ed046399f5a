/**
 * A plain grant read off its bytes (`plain-grant.ts` says what one is), for the watch: of all that a member
 * reads there, nearly everything is such records of others, and to make a text of each and match it against
 * a pattern is a third of what an event costs. The two readers agree on every text; what is not ASCII, or not
 * as this build writes it, is none here, and the text is looked at.
 *
 *   {"v":1,"phase":"owned","incarnation":I,"generation":G,"owner":{"member":"M","session":"S"},"how":"H",
 *    "previous":null | {"member":"M","session":"S","incarnation":I,"generation":G-1},"operation":"16 hex","atMs":T}
 */
import type { MemberName, SessionId } from './ids.ts'
import type { Owner } from './partition-record.ts'
import { GRANT_KINDS, type PlainGrant } from './plain-grant.ts'
import type { ValueBytes } from './transaction.ts'

const literal = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0))

const HEAD = literal('{"v":1,"phase":"owned","incarnation":')
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

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NOUGHT = 0x30
const LOWER_A = 0x61
const DIGITS_MAX = 15
const OWNERS_MAX = 4096

/** Null for any other bytes, whether a record's or not. */
export function readPlainGrantBytes(bytes: ValueBytes): PlainGrant | null {
  reader.begin(bytes)
  return reader.grant()
}

class GrantReader {
  private buffer: Uint8Array = HEAD
  private at = 0
  private to = 0
  private isSound = true
  /** By a hash of their bytes; of two with the same one the later stays. */
  private readonly owners = new Map<number, Owner>()

  begin({ buffer, from, to }: ValueBytes): void {
    this.buffer = buffer
    this.at = from
    this.to = to
    this.isSound = true
  }

  grant(): PlainGrant | null {
    this.expect(HEAD)
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
    this.expect(END)
    if (!this.isSound || this.at !== this.to) return null
    return { incarnation, generation, owner, previous, kind, high, low, atMs }
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

  /** Both names, from the first of a member's to the last of its session's. */
  private owner(): Owner {
    const from = this.at
    const memberHash = this.name()
    const memberTo = this.at
    this.expect(SESSION)
    const sessionFrom = this.at
    const hash = Math.imul(memberHash, 31) + this.name()
    if (!this.isSound) return NO_OWNER
    const known = this.owners.get(hash)
    if (
      known !== undefined &&
      this.stands(known.member, from, memberTo) &&
      this.stands(known.session, sessionFrom, this.at)
    ) {
      return known
    }
    const owner: Owner = {
      member: this.text(from, memberTo) as MemberName,
      session: this.text(sessionFrom, this.at) as SessionId,
    }
    if (this.owners.size >= OWNERS_MAX) this.owners.clear()
    this.owners.set(hash, owner)
    return owner
  }

  private stands(text: string, from: number, to: number): boolean {
    if (text.length !== to - from) return false
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
    const { buffer, at } = this
    for (let index = 0; index < bytes.length; index += 1) {
      if (buffer[at + index] !== bytes[index]) return false
    }
    this.at = at + bytes.length
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

  /** Up to the quote; its hash. */
  private name(): number {
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
const reader = new GrantReader()
