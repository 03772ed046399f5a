/**
 * The churn budget: how many moves may be under way, in the group and at each member (as source and as
 * target), and how many may begin within a minute.
 *
 * It is spent in portions. A move that ends frees one place, and asking for one more at once would cost
 * one etcd request per move; so a side that is full is filled again only when half of it is free, and
 * the requests carry a hundred moves each. The sequence is by blocks of one source each, sources in turn:
 * no member waits for another's whole plan, and what one member must hand over it can commit together.
 */
import { COMMITS_PER_BATCH_MAX } from './commit-batch.ts'
import type { GroupConfig } from './group-config.ts'
import type { MemberName } from './ids.ts'
import { queueFacts } from './rebalancer-queue.ts'
import type { QueuedMove, Release } from './rebalancer-state.ts'

const MINUTE_MS = 60_000

/** A move under way, as far as the budget is concerned. */
export type InFlight = { readonly from: MemberName; readonly to: MemberName | null }

export type BudgetQuestion = {
  readonly queue: readonly QueuedMove[]
  readonly inFlight: readonly InFlight[]
  readonly budget: GroupConfig['budget']
  readonly released: readonly Release[]
  readonly nowMs: number
}

export type BudgetAnswer = {
  readonly release: readonly QueuedMove[]
  readonly rest: readonly QueuedMove[]
  /** When the limit per minute allows more; null: that is not what it waits for. */
  readonly againAtMs: number | null
}

/** Which moves of the queue may begin now. */
export function spendBudget(question: BudgetQuestion): BudgetAnswer {
  const { queue, inFlight, budget, nowMs } = question
  const nothing = (againAtMs: number | null) => ({ release: [], rest: queue, againAtMs })
  if (queue.length === 0) return nothing(null)
  const thisMinute = question.released.filter(({ atMs }) => atMs > nowMs - MINUTE_MS)
  const begun = thisMinute.reduce((sum, { moves }) => sum + moves, 0)
  const perMinute = budget.movesPerMinute === 0 ? queue.length : budget.movesPerMinute - begun
  if (perMinute <= 0) return nothing((thisMinute[0]?.atMs ?? nowMs) + MINUTE_MS)
  const free = budget.movesInFlight - inFlight.length
  if (free < half(budget.movesInFlight)) return nothing(null)
  const fitting = choose(queue, inFlight, budget.movesInFlightPerMember, Math.min(free, perMinute))
  const release = new Set(wholeBatches(fitting, queue.length))
  if (release.size === 0) return nothing(null)
  return {
    release: [...release],
    rest: queue.filter((move) => !release.has(move)),
    againAtMs: null,
  }
}

/** Greedy, in the sequence of the queue, over members of which at least half is free. */
function choose(
  queue: readonly QueuedMove[],
  inFlight: readonly InFlight[],
  perMember: number,
  most: number,
): readonly QueuedMove[] {
  const busy = new Map<MemberName, number>()
  const add = (member: MemberName): void => {
    busy.set(member, (busy.get(member) ?? 0) + 1)
  }
  for (const { from, to } of inFlight) {
    add(from)
    if (to !== null && to !== from) add(to)
  }
  const closed = new Set<MemberName>()
  for (const [member, count] of busy) {
    if (perMember - count < half(perMember)) closed.add(member)
  }
  const chosen: QueuedMove[] = []
  const { sources, targets } = queueFacts(queue)
  const isOpen = (member: MemberName) => !closed.has(member)
  if (![...sources].some(isOpen) || ![...targets].some(isOpen)) return chosen
  for (const move of queue) {
    if (chosen.length >= most) break
    const { from, to } = move
    if (closed.has(from) || closed.has(to)) continue
    add(from)
    if (to !== from) add(to)
    if ((busy.get(from) ?? 0) >= perMember) closed.add(from)
    if ((busy.get(to) ?? 0) >= perMember) closed.add(to)
    chosen.push(move)
  }
  return chosen
}

/** Full requests only, unless it is the last of the queue or less than one request anyway. */
function wholeBatches(chosen: readonly QueuedMove[], queued: number): readonly QueuedMove[] {
  if (chosen.length === queued || chosen.length < COMMITS_PER_BATCH_MAX) return chosen
  return chosen.slice(0, chosen.length - (chosen.length % COMMITS_PER_BATCH_MAX))
}

function half(limit: number): number {
  return Math.ceil(limit / 2)
}

/** The releases that still count, and this one. */
export function recordRelease(
  released: readonly Release[],
  moves: number,
  nowMs: number,
): readonly Release[] {
  const counting = released.filter(({ atMs }) => atMs > nowMs - MINUTE_MS)
  return moves === 0 ? counting : [...counting, { atMs: nowMs, moves }]
}
