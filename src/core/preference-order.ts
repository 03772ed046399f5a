/**
 * Each partition's order of preference among members. The assignor asks for it; the ring answers it.
 * Every member must compute the same order from the same names, or two would elect differently (which
 * the election's transaction settles, but at the price of moves later).
 */
import type { MemberName, PartitionId } from './ids.ts'

export type PreferenceOrder = {
  /**
   * The first `count` members that the partition prefers, most preferred first, each once; fewer when
   * fewer exist. A longer answer begins with the shorter one. Cheap for small counts, so ask for
   * little first and for more only when that does not do.
   */
  order(partition: PartitionId, count: number): readonly MemberName[]
}

/**
 * The order among exactly these members, in whatever sequence they are named. With a member more or
 * less, the others keep their places relative to each other.
 */
export type PreferenceOrderFactory = (members: readonly MemberName[]) => PreferenceOrder
