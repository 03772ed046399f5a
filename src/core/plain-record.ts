/**
 * A plain record: a grant, or a grant that is being revoked, as nearly all are. Its operation is eight bytes
 * in hexadecimal, and who held the partition before, if anybody, held it at the generation before, in the same
 * incarnation. Such a record needs no text: a few numbers, who is named and the move say all of it, and from
 * those its exact text and the decoded record are put together again.
 */
import type { OperationId } from './ids.ts'
import type { GrantKind, Owner, PartitionRecord, PendingMove } from './partition-record.ts'
import { ownedText, revokingText } from './record-text.ts'
import type { Position } from './token.ts'

export type PlainRecord = Position & {
  readonly owner: Owner
  readonly previous: Owner | null
  /** Place in {@link GRANT_KINDS}. */
  readonly kind: number
  /** The operation id's first and last four bytes. */
  readonly high: number
  readonly low: number
  readonly atMs: number
  /** Null: owned. */
  readonly move: PendingMove | null
}

export const GRANT_KINDS: readonly GrantKind[] = ['election', 'hand-over', 'forced']

type Granted = PartitionRecord & { readonly phase: 'owned' | 'revoking' }

/** The text that was read; as `encodePartitionRecord` writes it. */
export function plainText(record: Granted): string {
  return record.phase === 'owned' ? ownedText(record) : revokingText(record, record.move)
}

/**
 * As `decodePartitionRecord` gives it. No literal begins with a spread and goes on: on Node 20 each such object has
 * a hidden class of its own, which takes ten times as long to make and is slow to read.
 */
export function decodedRecord(plain: PlainRecord): Granted {
  const { incarnation, generation, owner, kind, high, low, atMs, move } = plain
  const how = GRANT_KINDS[kind] as GrantKind
  const previous = previousOf(plain)
  const operation = `${hex8(high)}${hex8(low)}` as OperationId
  const grant = { incarnation, generation, owner, how, previous, operation, atMs, unknown: null }
  return move === null ? { phase: 'owned', ...grant } : { phase: 'revoking', ...grant, move }
}

function previousOf({ previous, incarnation, generation }: PlainRecord) {
  if (previous === null) return null
  const { member, session } = previous
  return { member, session, incarnation, generation: generation - 1 }
}

const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Looked up: the engine takes ten times as long to write a number in hexadecimal. */
function hex8(value: number): string {
  return (
    `${BYTES[value >>> 24]}${BYTES[(value >>> 16) & 0xff]}` +
    `${BYTES[(value >>> 8) & 0xff]}${BYTES[value & 0xff]}`
  )
}
