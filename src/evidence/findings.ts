/** What a verification says: which promise, where, when, and in which words. */

/** Promises that the two logs can prove or disprove; their texts are in DESIGN, section 1. */
export const PROMISES = ['S1', 'S2', 'S3', 'S10', 'S11'] as const
export type PromiseName = (typeof PROMISES)[number]

export type ViolationKind =
  /** S1: a grant at or below a position that was granted before. */
  | 'generation-repeated'
  /** S1: a grant more than one above the grant that it names as the one before it. */
  | 'generation-skipped'
  /** S2: one position granted to two sessions. */
  | 'two-sessions-one-token'
  /** S2: a record names another owner without a grant. */
  | 'owner-changed'
  /** S3: accepted although a higher token had been accepted before. */
  | 'accepted-decreases'
  /** S3: accepted at the position of another session's accepted token. */
  | 'equal-position-other-session'
  /** S3: accepted under a token that etcd never granted. */
  | 'ungranted-token'
  /** S10: an effect of the old owner was under way when one of the new owner began, after a drain. */
  | 'drained-overlap'
  /** S10: accepted from an owner that had drained and handed over. */
  | 'accepted-after-hand-over'
  /** S11: an acknowledged input without an effect, or with two. */
  | 'input-lost'
  | 'input-doubled'

export type Violation = {
  readonly promise: PromiseName
  readonly kind: ViolationKind
  /** Null: an input of which no effect tells the partition. */
  readonly partition: number | null
  /** Positions concerned, `<incarnation>.<generation>`, older first. */
  readonly generations: readonly string[]
  /** Milliseconds on the log's own clock; null: unknown. */
  readonly atMs: number | null
  readonly detail: string
}

export type Gap = {
  /** Null: anywhere. */
  readonly partition: number | null
  readonly detail: string
}

export function describePosition(position: {
  readonly incarnation: number
  readonly generation: number
}): string {
  return `${position.incarnation}.${position.generation}`
}

/** `S3 accepted-decreases: partition 4 at 1764.7, 1764.6, 12.5 ms: …`, for logs and terminals. */
export function describeViolation(violation: Violation): string {
  const { promise, kind, partition, generations, atMs, detail } = violation
  const where = partition === null ? [] : [`partition ${partition}`]
  const at = generations.length === 0 ? [] : [`generations ${generations.join(', ')}`]
  const when = atMs === null ? [] : [`at ${Math.round(atMs * 10) / 10} ms`]
  return `${promise} ${kind}: ${[...where, ...at, ...when, detail].join(', ')}`
}

export function describeGap({ partition, detail }: Gap): string {
  return partition === null ? detail : `partition ${partition}: ${detail}`
}
