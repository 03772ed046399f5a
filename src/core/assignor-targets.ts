/**
 * How many partitions each member should hold.
 *
 * A member's share is available × weight / sum of weights. Capacities cap it by water-filling: whoever
 * is full steps out with its capacity, and the rest share what remains. Each other member's target is
 * its share rounded down or up, so that targets add up and any two differ by at most one per unit of
 * weight. Among these roundings the one chosen needs the fewest moves: rounding up saves one move
 * exactly at a member that holds more than its share rounded down, and all such savings are alike.
 * Members that would reach that count with what comes back to them are next; then the larger fraction,
 * then the name decides.
 *
 * The choice is stable: it does not change while the moves that it asks for are carried out one by one.
 */
import type { MemberName } from './ids.ts'

export type MemberLoad = {
  readonly member: MemberName
  /** Share relative to others; 0 or less: gets nothing. */
  readonly weight: number
  /** Most partitions that it takes; null: no limit. */
  readonly capacity: number | null
  /** Partitions that it holds. */
  readonly held: number
  /** Vacant partitions that it held last. */
  readonly returning: number
}

type Share = {
  readonly index: number
  readonly floor: number
  /** What rounding down drops, as a multiple of 1 / sum of weights. */
  readonly rest: bigint
}

/**
 * The target count per member, by position in `loads`; the result does not depend on their sequence.
 * Sums up to `available`, or to less when capacities do not reach or nobody has weight.
 */
export function targetCounts(available: number, loads: readonly MemberLoad[]): readonly number[] {
  const targets = loads.map(() => 0)
  const { shares, remaining } = fillToCapacity(available, loads, targets)
  let extras = remaining
  for (const share of shares) {
    targets[share.index] = share.floor
    extras -= share.floor
  }
  if (shares.length === 0) return targets
  const candidates = shares.filter((share) => share.rest > 0n)
  candidates.sort((a, b) => compareForExtra(a, b, loads))
  for (const share of candidates.slice(0, extras)) targets[share.index] = share.floor + 1
  return targets
}

/** Sets the targets of full members, and gives the others' shares of what remains. */
function fillToCapacity(
  available: number,
  loads: readonly MemberLoad[],
  targets: number[],
): { readonly shares: readonly Share[]; readonly remaining: number } {
  let remaining = available
  let open = loads.map((_, index) => index).filter((index) => at(loads, index).weight > 0)
  for (;;) {
    let weights = 0n
    for (const index of open) weights += BigInt(at(loads, index).weight)
    const shared = BigInt(remaining)
    const full = open.filter((index) => {
      const { capacity, weight } = at(loads, index)
      return capacity !== null && BigInt(capacity) * weights < shared * BigInt(weight)
    })
    if (full.length === 0) {
      const shares = open.map((index) => {
        const product = shared * BigInt(at(loads, index).weight)
        return { index, floor: Number(product / weights), rest: product % weights }
      })
      return { shares, remaining }
    }
    for (const index of full) {
      const capacity = Math.max(0, at(loads, index).capacity ?? 0)
      targets[index] = capacity
      remaining -= capacity
    }
    open = open.filter((index) => !full.includes(index))
  }
}

function compareForExtra(a: Share, b: Share, loads: readonly MemberLoad[]): number {
  const left = at(loads, a.index)
  const right = at(loads, b.index)
  const ranks = rank(left, a.floor) - rank(right, b.floor)
  if (ranks !== 0) return ranks
  if (a.rest !== b.rest) return a.rest > b.rest ? -1 : 1
  return left.member < right.member ? -1 : 1
}

/** 0: an extra saves a move; 1: an extra lets all of its own come back; 2: neither. */
function rank(load: MemberLoad, floor: number): 0 | 1 | 2 {
  if (load.held > floor) return 0
  return load.held + load.returning > floor ? 1 : 2
}

function at(loads: readonly MemberLoad[], index: number): MemberLoad {
  const load = loads[index]
  if (load === undefined) throw new RangeError(`no member at ${index}`)
  return load
}
