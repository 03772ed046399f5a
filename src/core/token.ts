/**
 * What a grant hands to its owner. Tokens of one partition are ordered by (incarnation, generation);
 * the session is no part of the order: two equal positions of different sessions are two writers, of
 * which a resource accepts the first it sealed (S2, S3).
 */
import { type GroupName, type PartitionId, type SessionId, sessionId } from './ids.ts'
import { createTenureError } from './tenure-error.ts'

/** Position of a grant in a partition's history. */
export type Position = {
  /** Number of the group's history in etcd: creation time in seconds, or what an operator raised it to. */
  readonly incarnation: number
  /** Number of the grant inside the incarnation; rises by one per grant. */
  readonly generation: number
}

export type Token = Position & {
  readonly group: GroupName
  readonly partition: PartitionId
  readonly session: SessionId
}

/** The position below every grant. */
export const BEFORE_ANY_GRANT: Position = { incarnation: 0, generation: 0 }

/** Negative when a is older, 0 at the same position, positive when a is newer. */
export function comparePositions(a: Position, b: Position): number {
  return a.incarnation - b.incarnation || a.generation - b.generation
}

/** True when both name the same grant of the same session. */
export function isSameGrant(
  a: Position & { session: SessionId },
  b: Position & { session: SessionId },
): boolean {
  return comparePositions(a, b) === 0 && a.session === b.session
}

/**
 * Sortable text: `<incarnation, 12 hex>.<generation, 12 hex>.<session, 16 hex>`. Compared as bytes it
 * orders as {@link comparePositions} does, sessions breaking ties (that tie-break means nothing).
 */
export function sortableToken(token: Position & { session: SessionId }): string {
  return `${hex12(token.incarnation)}.${hex12(token.generation)}.${token.session}`
}

const SORTABLE = /^([0-9a-f]{12})\.([0-9a-f]{12})\.([0-9a-f]{16})$/

/** What {@link sortableToken} made; null for another text. */
export function readSortableToken(text: string): (Position & { session: SessionId }) | null {
  const [, incarnation, generation, session] = SORTABLE.exec(text) ?? []
  if (incarnation === undefined || generation === undefined || session === undefined) return null
  return {
    incarnation: Number.parseInt(incarnation, 16),
    generation: Number.parseInt(generation, 16),
    session: sessionId(session),
  }
}

/** 64-bit order of a position for SQL: incarnation * 2^31 + generation. Order only, not identity. */
export function positionToInt64(position: Position): bigint {
  if (position.incarnation >= 2 ** 32 || position.generation >= 2 ** 31) {
    throw createTenureError('invariant-broken', 'token position outside the 64-bit form')
  }
  return (BigInt(position.incarnation) << 31n) | BigInt(position.generation)
}

/** `orders/17@1764440000.5` for logs and terminals. */
export function describeToken(token: Token): string {
  return `${token.group}/${token.partition}@${token.incarnation}.${token.generation}`
}

function hex12(value: number): string {
  return value.toString(16).padStart(12, '0')
}
