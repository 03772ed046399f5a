/**
 * A plain grant: an owned record as nearly all are. Its operation is eight bytes in hexadecimal, and who
 * held the partition before, if anybody, held it at the generation before, in the same incarnation. Such a
 * record needs no text: what is not in its outline are three numbers and a kind, and from those its exact
 * text and the decoded record are put together again.
 */
import { grantText } from './grant-text.ts'
import type { MemberName, OperationId, SessionId } from './ids.ts'
import type { GrantKind, Owner, PartitionRecord } from './partition-record.ts'
import type { Position } from './token.ts'

export type PlainGrant = Position & {
  readonly owner: Owner
  readonly previous: Owner | null
  /** Place in {@link GRANT_KINDS}. */
  readonly kind: number
  /** The operation id's first and last four bytes. */
  readonly high: number
  readonly low: number
  readonly atMs: number
}

export const GRANT_KINDS: readonly GrantKind[] = ['election', 'hand-over', 'forced']

/** As JSON has it (with a nought before other digits it is no number), and not beyond what a double holds. */
export const WHOLE = '(?:0|[1-9]\\d{0,14})'
/** Nothing that JSON escapes, so it stands in the record as it does in the text. */
export const TEXT = '[^"\\\\\\u0000-\\u001f]*'
export const OWNER = `\\{"member":"(${TEXT})","session":"(${TEXT})"`
const PREVIOUS = `(?:null|${OWNER},"incarnation":(${WHOLE}),"generation":(${WHOLE})\\})`
const NOUGHT = 0x30
const LOWER_A = 0x61
const FOUR_BYTES = '([0-9a-f]{8})'
const PLAIN = new RegExp(
  `^\\{"v":1,"phase":"owned","incarnation":(${WHOLE}),"generation":(${WHOLE}),"owner":${OWNER}\\},` +
    `"how":"(${GRANT_KINDS.join('|')})","previous":${PREVIOUS},` +
    `"operation":"${FOUR_BYTES}${FOUR_BYTES}","atMs":(${WHOLE})\\}$`,
)

/** Null for any other text, whether a record or not. */
export function readPlainGrant(text: string): PlainGrant | null {
  const read = PLAIN.exec(text)
  if (read === null) return null
  const incarnation = Number(read[1])
  const generation = Number(read[2])
  const before = read[6]
  const isChained = read[8] === read[1] && Number(read[9]) === generation - 1
  if (before !== undefined && !isChained) return null
  return {
    incarnation,
    generation,
    owner: { member: read[3] as MemberName, session: read[4] as SessionId },
    previous:
      before === undefined ? null : { member: before as MemberName, session: read[7] as SessionId },
    kind: GRANT_KINDS.indexOf(read[5] as GrantKind),
    high: fourBytes(read[10] as string),
    low: fourBytes(read[11] as string),
    atMs: Number(read[12]),
  }
}

function fourBytes(hex: string): number {
  let value = 0
  for (let at = 0; at < hex.length; at += 1) {
    const code = hex.charCodeAt(at)
    value = value * 16 + (code < LOWER_A ? code - NOUGHT : code - LOWER_A + 10)
  }
  return value
}

/** The text that was read; as `encodePartitionRecord` writes it. */
export function plainText(grant: PlainGrant): string {
  return grantText(plainRecord(grant))
}

/** As `decodePartitionRecord` gives it. */
export function plainRecord(grant: PlainGrant): PartitionRecord & { readonly phase: 'owned' } {
  const { incarnation, generation, owner, previous, kind, high, low, atMs } = grant
  return {
    phase: 'owned',
    incarnation,
    generation,
    owner,
    how: GRANT_KINDS[kind] as GrantKind,
    previous:
      previous === null
        ? null
        : {
            member: previous.member,
            session: previous.session,
            incarnation,
            generation: generation - 1,
          },
    operation: `${hex8(high)}${hex8(low)}` as OperationId,
    atMs,
    unknown: null,
  }
}

const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Looked up: the engine takes ten times as long to write a number in hexadecimal. */
function hex8(value: number): string {
  return (
    `${BYTES[value >>> 24]}${BYTES[(value >>> 16) & 0xff]}` +
    `${BYTES[(value >>> 8) & 0xff]}${BYTES[value & 0xff]}`
  )
}
