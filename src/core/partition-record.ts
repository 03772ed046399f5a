/**
 * The record of one partition: the only place where ownership is decided.
 *
 *                 elect (owner's session gone, or no owner)
 *      ┌──────────────────────────────────────────────────────┐
 *      ▼                                                      │
 *   vacant ──elect──▶ owned ──revoke──▶ revoking ──grant──▶ owned at g+1
 *      ▲                │ ▲                │   │ ▲                 (committed by the owner after its
 *      │                │ └──vacate/grant──┘   │ │retarget          drain, or forced in a fenced group)
 *      └────vacate──────┴──────────────────────┘ └┘
 *   owned | revoking ──halt──▶ halted ──elect, once the group's incarnation has risen──▶ owned
 *
 * I1  generation rises by exactly one on each grant and never falls inside an incarnation.
 * I2  every write carries a fresh operation id, so no two values of a record are ever equal.
 * I3  owned and revoking name an owner; vacant names none.
 * I4  a revoking record still belongs to its owner at its generation: it is a request, not a grant.
 */
import type { MemberName, OperationId, PartitionId, SessionId } from './ids.ts'
import { isObject, readVersion } from './record-format.ts'
import { ownedText } from './record-text.ts'
import { createTenureError } from './tenure-error.ts'
import type { Position } from './token.ts'

export type Owner = {
  readonly member: MemberName
  readonly session: SessionId
}

/** Who held the partition at the grant before this one. */
export type PreviousOwner = Owner & {
  readonly incarnation: number
  readonly generation: number
}

export type MoveReason =
  | 'balance'
  | 'operator'
  | 'drain-member'
  | 'leave'
  | 'disabled'
  | 'incarnation'
  | 'acquire-failed'

/** A pending move. `to` null: to nobody, the partition is to become vacant. */
export type PendingMove = {
  readonly id: string
  readonly to: MemberName | null
  readonly reason: MoveReason
  readonly by: string
  /** How often `to` was rewritten; bounded by `MOVE_REWRITES_MAX`. */
  readonly rewrites: number
  /** Wall time of the revoke, for display. */
  readonly atMs: number
}

/** How the current owner came by its grant. */
export type GrantKind = 'election' | 'hand-over' | 'forced'

type Common = {
  readonly incarnation: number
  readonly generation: number
  readonly operation: OperationId
  readonly previous: PreviousOwner | null
  /** Wall time of this write, for display only. */
  readonly atMs: number
  /** Fields that this version does not know, written back as they came. */
  readonly unknown: Readonly<Record<string, unknown>> | null
}

export type PartitionRecord =
  | (Common & { readonly phase: 'vacant' })
  | (Common & {
      readonly phase: 'owned'
      readonly owner: Owner
      readonly how: GrantKind
    })
  | (Common & {
      readonly phase: 'revoking'
      readonly owner: Owner
      readonly how: GrantKind
      readonly move: PendingMove
    })
  | (Common & {
      readonly phase: 'halted'
      readonly owner: Owner
      readonly reason: string
      /** What a resource has sealed, where that is of a later incarnation than the record. */
      readonly highest?: Position
    })

export const MOVE_REWRITES_MAX = 8

/** The owner that the record names, in any phase, or null. */
export function recordOwner(record: PartitionRecord | null): Owner | null {
  return record === null || record.phase === 'vacant' ? null : record.owner
}

/** The incarnation that must be exceeded before a halted partition is granted again. */
export function haltedThrough(record: PartitionRecord & { readonly phase: 'halted' }): number {
  return Math.max(record.incarnation, record.highest?.incarnation ?? 0)
}

const KNOWN = new Set([
  ...['incarnation', 'generation', 'phase', 'owner', 'how', 'move', 'reason'],
  ...['highest', 'operation', 'previous', 'atMs'],
])

export function encodePartitionRecord(record: PartitionRecord): string {
  if (record.phase === 'owned' && record.unknown === null) return ownedText(record)
  const { unknown, ...fields } = record
  const text = JSON.stringify(unknown === null ? fields : { ...fields, ...unknown })
  return `{"v":1,${text.slice(1)}`
}

/**
 * @throws TenureError `record-version-unknown` for another `v`, `record-malformed` for anything that
 * is not a record.
 */
export function decodePartitionRecord(text: string, partition: PartitionId): PartitionRecord {
  const value = readVersion(text, `record of partition ${partition}`)
  const { phase, owner, incarnation, generation, operation, previous } = value
  const sound =
    Number.isSafeInteger(incarnation) &&
    Number.isSafeInteger(generation) &&
    typeof operation === 'string' &&
    (phase === 'vacant' || isOwner(owner)) &&
    (previous === undefined || previous === null || isOwner(previous)) &&
    (phase === 'vacant' || phase === 'owned' || phase === 'halted' || isRevoking(value))
  if (!sound) {
    throw createTenureError('record-malformed', `record of partition ${partition}: ${text}`)
  }
  const known: Record<string, unknown> = {}
  let unknown: Record<string, unknown> | null = null
  for (const name of Object.keys(value)) {
    if (KNOWN.has(name)) known[name] = value[name]
    else if (name !== 'v') {
      unknown ??= {}
      unknown[name] = value[name]
    }
  }
  // Not spread into another object: that costs more than all the rest, once per event of every member.
  known['unknown'] = unknown
  return known as unknown as PartitionRecord
}

function isOwner(value: unknown): boolean {
  return (
    isObject(value) && typeof value['member'] === 'string' && typeof value['session'] === 'string'
  )
}

function isRevoking(value: Readonly<Record<string, unknown>>): boolean {
  const { phase, move } = value
  return (
    phase === 'revoking' &&
    isObject(move) &&
    typeof move['id'] === 'string' &&
    (move['to'] === null || typeof move['to'] === 'string') &&
    Number.isSafeInteger(move['rewrites'])
  )
}
