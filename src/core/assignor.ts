/**
 * The assignor: who should own each partition. Pure, and the same whatever the sequence of its input,
 * so every member computes it for itself: to know for which vacant partitions to campaign, and the
 * rebalancer to know which moves to plan.
 *
 *   1. Count what each member should hold (assignor-targets.ts).
 *   2. Owners keep what they have, up to that count.
 *   3. Vacant partitions go back to their last owner by name while it has room, the others to the first
 *      member with room in the partition's ring order.
 *   4. Partitions of owners that are neither members nor keeping (they leave) find a place likewise.
 *   5. Members that hold too many shed the surplus: first partitions whose ring order begins with a
 *      member that has room, then such as prefer another member, then the rest, and last those that came
 *      from a member that has room. So a restart stops each partition once, not on the way out and again on
 *      the way back: who returns gets others.
 *
 * Promised: nothing moves between two members unless the first holds too many or leaves, so the moves
 * are as few as the counts allow; a plan half carried out leaves just the rest of it to do. A partition
 * for which there is no room stays with its owner if it has one: balance is no reason to stop work.
 *
 * Not promised: that partitions sit where their ring order would have them. Balance comes first, then
 * staying, then the ring.
 */
import { targetCounts } from './assignor-targets.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { PreferenceOrder } from './preference-order.ts'

/** A member that may receive partitions: live, active, not cordoned. */
export type AssignableMember = {
  readonly member: MemberName
  /** Share relative to others, integer; 0: gets nothing and gives up what it has. */
  readonly weight: number
  /** Most partitions that it takes; null: no limit. */
  readonly capacity: number | null
}

export type AssignmentInput = {
  /** P. */
  readonly partitions: number
  /** Members that may receive, each name once, in any sequence. */
  readonly members: readonly AssignableMember[]
  /**
   * By partition, who holds it or is about to: the target of a pending move, else the live owner, else
   * null. Names found neither in `members` nor in `keeping` leave: their partitions must move.
   */
  readonly owners: readonly (MemberName | null)[]
  /** Members that receive nothing and keep what they have (cordoned ones). */
  readonly keeping: ReadonlySet<MemberName>
  /** By partition, the last owner's name; read where the partition is vacant. */
  readonly lastOwners: readonly (MemberName | null)[]
  /** Who held an owned partition before its owner; asked only where one may have to move for balance. */
  readonly cameFrom: (partition: PartitionId) => MemberName | null
  /** Partitions that get no owner (disabled, halted). They count for nobody. */
  readonly excluded: ReadonlySet<PartitionId>
  /** Made from the names of `members`; other names in it are passed over. */
  readonly order: PreferenceOrder
}

export type AssignedMove = {
  readonly partition: PartitionId
  readonly from: MemberName
  readonly to: MemberName
}

export type AssignedVacancy = { readonly partition: PartitionId; readonly to: MemberName }

export type Assignment = {
  /** By partition: who should own it; null where it is excluded or nobody has room. */
  readonly targets: readonly (MemberName | null)[]
  /** Balancing and leaving, by partition. */
  readonly moves: readonly AssignedMove[]
  /** Vacant partitions and who should campaign for them first, by partition. */
  readonly vacancies: readonly AssignedVacancy[]
  /** Vacant or leaving partitions for which nobody has room, by partition. */
  readonly unplaced: readonly PartitionId[]
  /** How many partitions each member of `members` should hold. */
  readonly counts: ReadonlyMap<MemberName, number>
}

/** In a survey: no owner, excluded, held by a keeping member, held by one that leaves. */
const VACANT = -1
const EXCLUDED = -2
const KEPT = -3
const LEAVING = -4

/** Where each partition stands, members by their place in the sorted names. */
type Survey = {
  readonly names: readonly MemberName[]
  readonly indexOf: ReadonlyMap<MemberName, number>
  readonly holders: Int32Array
  readonly held: Int32Array
  readonly returning: Int32Array
  readonly available: number
}

/** What is decided so far: each partition's member (or one of the negative marks) and who has room. */
type Board = Survey & {
  readonly order: PreferenceOrder
  readonly assigned: Int32Array
  readonly room: Int32Array
  /** How many members have room. */
  roomy: number
}

/** Linear in P, plus one short look at the ring per partition that is vacant or may be shed. */
export function assign(input: AssignmentInput): Assignment {
  const survey = surveyOwners(input)
  const byName = new Map(input.members.map((entry) => [entry.member, entry]))
  const loads = survey.names.map((member, index) => ({
    member,
    weight: byName.get(member)?.weight ?? 0,
    capacity: byName.get(member)?.capacity ?? null,
    held: survey.held[index] ?? 0,
    returning: survey.returning[index] ?? 0,
  }))
  const counts = targetCounts(survey.available, loads)
  const room = Int32Array.from(counts, (count, index) => count - (survey.held[index] ?? 0))
  const board: Board = {
    ...survey,
    order: input.order,
    assigned: survey.holders.slice(),
    room,
    roomy: room.reduce((roomy, free) => (free > 0 ? roomy + 1 : roomy), 0),
  }
  placeReturning(board, input)
  placeAll(board, VACANT)
  placeAll(board, LEAVING)
  for (const partition of chooseSurplus(board, input)) place(board, partition)
  return report(board, input, counts)
}

function surveyOwners(input: AssignmentInput): Survey {
  const names = [...new Set(input.members.map((entry) => entry.member))].sort()
  const indexOf = new Map(names.map((name, index) => [name, index]))
  const holders = new Int32Array(input.partitions)
  const held = new Int32Array(names.length)
  const returning = new Int32Array(names.length)
  let available = 0
  for (let partition = 0; partition < input.partitions; partition += 1) {
    const owner = input.owners[partition] ?? null
    const holder = locate(input, indexOf, partition, owner)
    holders[partition] = holder
    if (holder === EXCLUDED || holder === KEPT) continue
    available += 1
    if (holder >= 0) held[holder] = (held[holder] ?? 0) + 1
    else if (holder === VACANT) {
      const last = indexOf.get(input.lastOwners[partition] ?? ('' as MemberName))
      if (last !== undefined) returning[last] = (returning[last] ?? 0) + 1
    }
  }
  return { names, indexOf, holders, held, returning, available }
}

function locate(
  input: AssignmentInput,
  indexOf: ReadonlyMap<MemberName, number>,
  partition: PartitionId,
  owner: MemberName | null,
): number {
  if (input.excluded.size > 0 && input.excluded.has(partition)) return EXCLUDED
  if (owner === null) return VACANT
  const holder = indexOf.get(owner)
  if (holder !== undefined) return holder
  return input.keeping.has(owner) ? KEPT : LEAVING
}

/** All of them before any other vacancy, so that no stranger takes a returning member's room. */
function placeReturning(board: Board, input: AssignmentInput): void {
  for (let partition = 0; partition < input.partitions && board.roomy > 0; partition += 1) {
    if (board.assigned[partition] !== VACANT) continue
    const last = input.lastOwners[partition] ?? null
    const index = last === null ? undefined : board.indexOf.get(last)
    if (index !== undefined && (board.room[index] ?? 0) > 0) take(board, partition, index)
  }
}

function placeAll(board: Board, mark: number): void {
  for (let partition = 0; partition < board.assigned.length && board.roomy > 0; partition += 1) {
    if (board.assigned[partition] === mark) place(board, partition)
  }
}

/** Gives the partition to the first in its ring order with room; leaves it where it is if none has. */
function place(board: Board, partition: PartitionId): void {
  const index = firstWithRoom(board, partition)
  if (index !== null) take(board, partition, index)
}

function take(board: Board, partition: PartitionId, index: number): void {
  const free = (board.room[index] ?? 0) - 1
  board.room[index] = free
  if (free === 0) board.roomy -= 1
  board.assigned[partition] = index
}

function firstWithRoom(board: Board, partition: PartitionId): number | null {
  if (board.roomy === 0) return null
  if (board.roomy > 1) {
    let seen = 0
    for (let count = 1; ; count *= 4) {
      const preferred = board.order.order(partition, count)
      for (; seen < preferred.length; seen += 1) {
        const index = board.indexOf.get(preferred[seen] as MemberName)
        if (index !== undefined && (board.room[index] ?? 0) > 0) return index
      }
      if (preferred.length < count) break
    }
  }
  const index = board.room.findIndex((free) => free > 0)
  return index < 0 ? null : index
}

/**
 * The partitions that overloaded members should give up, those likeliest to sit well elsewhere first.
 * Where there is less room than surplus, the last of them stay where they are.
 */
function chooseSurplus(board: Board, { cameFrom }: AssignmentInput): readonly PartitionId[] {
  const classes: [PartitionId[], PartitionId[], PartitionId[], PartitionId[]] = [[], [], [], []]
  if (board.roomy === 0) return []
  for (let partition = 0; partition < board.holders.length; partition += 1) {
    const holder = board.holders[partition] ?? VACANT
    if (holder < 0 || (board.room[holder] ?? 0) >= 0) continue
    if (hasRoom(board, cameFrom(partition))) {
      classes[3].push(partition)
      continue
    }
    const preferred = board.order.order(partition, 1)[0]
    const first = preferred === undefined ? undefined : board.indexOf.get(preferred)
    if (first === holder || first === undefined) classes[2].push(partition)
    else classes[(board.room[first] ?? 0) > 0 ? 0 : 1].push(partition)
  }
  const surplus = board.room.map((free) => Math.max(0, -free))
  const chosen: PartitionId[] = []
  for (const partition of classes.flat()) {
    const holder = board.holders[partition] ?? VACANT
    if ((surplus[holder] ?? 0) === 0) continue
    surplus[holder] = (surplus[holder] ?? 0) - 1
    chosen.push(partition)
  }
  return chosen
}

function hasRoom({ indexOf, room }: Board, member: MemberName | null): boolean {
  const index = member === null ? undefined : indexOf.get(member)
  return index !== undefined && (room[index] ?? 0) > 0
}

function report(board: Board, input: AssignmentInput, counts: readonly number[]): Assignment {
  const targets: (MemberName | null)[] = new Array(input.partitions).fill(null)
  const moves: AssignedMove[] = []
  const vacancies: AssignedVacancy[] = []
  const unplaced: PartitionId[] = []
  for (let partition = 0; partition < input.partitions; partition += 1) {
    const holder = board.holders[partition] ?? VACANT
    const index = board.assigned[partition] ?? VACANT
    if (holder === EXCLUDED) continue
    const owner = input.owners[partition] ?? null
    const to = holder === KEPT ? owner : (board.names[index] ?? null)
    targets[partition] = to
    if (to === null) unplaced.push(partition)
    else if (owner === null) vacancies.push({ partition, to })
    else if (index !== holder) moves.push({ partition, from: owner, to })
  }
  const countOf = new Map(board.names.map((name, index) => [name, counts[index] ?? 0]))
  return { targets, moves, vacancies, unplaced, counts: countOf }
}
