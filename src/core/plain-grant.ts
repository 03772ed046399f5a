/**
 * A plain grant: an owned record as nearly all are. Its operation is eight bytes in hexadecimal, and who
 * held the partition before, if anybody, held it at the generation before, in the same incarnation. Such a
 * record needs no text: what is not in its outline are three numbers and a kind, and from those its exact
 * text and the decoded record are put together again.
 */
import type { OperationId } from './ids.ts'
import type { GrantKind, Owner, PartitionRecord } from './partition-record.ts'
import type { Position } from './token.ts'

/** What a plain grant says beyond its outline. */
export type PlainGrant = {
  /** Place in {@link GRANT_KINDS}. */
  readonly kind: number
  /** The operation id's first and last four bytes. */
  readonly high: number
  readonly low: number
  readonly atMs: number
}

export const GRANT_KINDS: readonly GrantKind[] = ['election', 'hand-over', 'forced']
const EIGHT_BYTES = /^[0-9a-f]{16}$/

/** Null where the kind or the operation is another's than this build's. */
export function plainGrant(how: string, operation: string, atMs: number): PlainGrant | null {
  const kind = GRANT_KINDS.indexOf(how as GrantKind)
  if (kind < 0 || !EIGHT_BYTES.test(operation)) return null
  const high = Number.parseInt(operation.slice(0, 8), 16)
  return { kind, high, low: Number.parseInt(operation.slice(8), 16), atMs }
}

/** The text that was read; as `encodePartitionRecord` writes it. */
export function plainText(
  { incarnation, generation }: Position,
  owner: Owner,
  previous: Owner | null,
  { kind, high, low, atMs }: PlainGrant,
): string {
  const before =
    previous === null
      ? 'null'
      : `{"member":"${previous.member}","session":"${previous.session}","incarnation":${incarnation},"generation":${generation - 1}}`
  return `{"v":1,"phase":"owned","incarnation":${incarnation},"generation":${generation},"owner":{"member":"${owner.member}","session":"${owner.session}"},"how":"${GRANT_KINDS[kind]}","previous":${before},"operation":"${hex8(high)}${hex8(low)}","atMs":${atMs}}`
}

/** As `decodePartitionRecord` gives it. */
export function plainRecord(
  { incarnation, generation }: Position,
  owner: Owner,
  previous: Owner | null,
  { kind, high, low, atMs }: PlainGrant,
): PartitionRecord & { readonly phase: 'owned' } {
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

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}
