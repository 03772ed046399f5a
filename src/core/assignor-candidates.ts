/**
 * Who campaigns for a vacant partition, and in which sequence: the member that the assignor gives it to
 * first, then the partition's ring order. If the first does not act (it is cut off, or sees another map),
 * the next one does after a delay, so no partition waits for one member.
 */
import type { MemberName, PartitionId } from './ids.ts'
import type { PreferenceOrder } from './preference-order.ts'

export type CandidateQuestion = {
  readonly partition: PartitionId
  /** Whom the assignor names; null: nobody (then the ring order alone decides). */
  readonly target: MemberName | null
  /** Made from the names of the members that may receive. */
  readonly order: PreferenceOrder
}

/** The first `count` candidates, each once; fewer when fewer members exist. */
export function campaignOrder(question: CandidateQuestion, count: number): readonly MemberName[] {
  const { partition, target, order } = question
  const preferred = order.order(partition, count)
  if (target === null || count <= 0) return preferred
  return [target, ...preferred.filter((member) => member !== target)].slice(0, count)
}

/**
 * The place of `member` among the candidates, 0 for the first; `limit` for everyone at that place or
 * later, so that a look at a large ring stays short and a delay that grows with the rank stays bounded.
 */
export function candidateRank(
  question: CandidateQuestion,
  member: MemberName,
  limit: number,
): number {
  if (member === question.target) return 0
  const rank = campaignOrder(question, limit).indexOf(member)
  return rank < 0 ? limit : rank
}
