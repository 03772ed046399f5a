/**
 * Which moves are needed, and when.
 *
 * Balance: once membership has been quiet for the settle delay, and again while partitions are vacant
 * (elections may place them other than planned), at growing intervals. While the group is frozen it
 * waits. Drains: at once, frozen or not. Both come out of one question to the assignor, in which drained
 * members leave; a plan that needs no moves does nothing.
 *
 * A change of membership drops the queue: what is not asked for yet was planned for other members. A plan
 * of which moves were skipped is followed by another, a few times, so that no failing acquire makes the
 * same move come round for ever. A partition that is under way is skipped too: it is to move on from where
 * it goes, which is planned once it is there, or its drain is overdue.
 */
import type { AssignedMove } from './assignor.ts'
import { revoke } from './commit.ts'
import { assignableMembers, assignGroup } from './group-assignment.ts'
import type { MemberName } from './ids.ts'
import { recordRelease, spendBudget } from './rebalancer-budget.ts'
import type { RebalancerDraft } from './rebalancer-draft.ts'
import { inBlocks, queueFacts } from './rebalancer-queue.ts'
import type { QueuedMove } from './rebalancer-state.ts'

export const PASSES_MAX = 3
const VACANCY_DELAY_FIRST_MS = 1000
const VACANCY_DELAY_MAX_MS = 30_000

export function plan(draft: RebalancerDraft): void {
  noticeMembership(draft)
  const { balance, nowMs, group } = draft
  if (group.freeze !== null) holdBalance(draft)
  const balanceDue = balance.dueAtMs !== null && nowMs >= balance.dueAtMs && group.freeze === null
  const drainsDue = draft.drainsDueAtMs !== null && nowMs >= draft.drainsDueAtMs
  if (balanceDue || drainsDue) makePlan(draft, balanceDue)
  endBalance(draft)
  const { dueAtMs } = draft.balance
  if (dueAtMs !== null && group.freeze === null) draft.wakeAt(dueAtMs)
  if (draft.drainsDueAtMs !== null) draft.wakeAt(draft.drainsDueAtMs)
}

/** Sends what the budget allows of the queue. */
export function release(draft: RebalancerDraft): void {
  if (draft.queue.length === 0) return
  const { nowMs, config } = draft
  const inFlight = [...draft.moves.values()]
    .filter((move) => !move.overdue && draft.group.isLive(move.from))
    .map(({ from, to }) => ({ from: from.member, to }))
  const { queue, released } = draft
  const answer = spendBudget({ queue, inFlight, budget: config.budget, released, nowMs })
  if (answer.againAtMs !== null) draft.wakeAt(answer.againAtMs)
  draft.queue = answer.rest
  let sent = 0
  for (const move of answer.release) {
    if (requestMove(draft, move)) sent += 1
    else if (move.id === draft.balance.id) draft.balance = { ...draft.balance, incomplete: true }
  }
  draft.released = recordRelease(released, sent, nowMs)
  if (sent < answer.release.length) draft.wakeAt(nowMs)
}

/** Asks for one move, if the partition still stands as planned. */
export function requestMove(draft: RebalancerDraft, move: QueuedMove): boolean {
  const { partition, from, to, id, reason, by } = move
  const { wallMs } = draft.view
  if (!isMovable(draft, partition, from) || !draft.canReceive(to)) return false
  const stored = draft.group.record(partition)
  if (stored?.record.phase !== 'owned') return false
  const { raw, record } = stored
  const pending = { id, to, reason, by, rewrites: 0, atMs: wallMs }
  draft.commit(revoke(partition, { raw, record }, pending, draft.session, draft.stamp(partition)))
  draft.moves.set(partition, {
    id,
    from: record.owner,
    to,
    reason,
    rewrites: 0,
    askedAtMs: draft.nowMs,
    seenAtMs: null,
    overdue: false,
    starved: false,
  })
  draft.actions.push({ type: 'move-requested', move })
  return true
}

/** Owned by this live member under the group's incarnation, and nothing under way for it. */
export function isMovable(draft: RebalancerDraft, partition: number, from: MemberName): boolean {
  const { group } = draft
  return (
    group.phase(partition) === 'owned' &&
    group.position(partition)?.incarnation === group.incarnation &&
    group.liveOwner(partition)?.member === from &&
    draft.mayMoveFrom(from) &&
    draft.mayHaveOwner(partition) &&
    !draft.moves.has(partition) &&
    !draft.isCommitting(partition)
  )
}

/** How many moves a balance would make now. */
export function countBalanceMoves(draft: RebalancerDraft): number {
  const { moves } = assignGroup(draft.group, draft.view.orderOf, { leaving: draft.draining() })
  return moves.filter(({ partition, from }) => isMovable(draft, partition, from)).length
}

/** Begins a balance for an operator, in place of one that nobody asked for. */
export function beginBalance(draft: RebalancerDraft, id: string, by: string): void {
  draft.queue = draft.queue.filter((move) => move.reason !== 'balance')
  draft.balance = {
    ...draft.balance,
    ...{ id, by, incomplete: false, passesLeft: PASSES_MAX, dueAtMs: draft.nowMs },
  }
}

export function dropBalance(draft: RebalancerDraft): void {
  draft.queue = draft.queue.filter((move) => move.reason !== 'balance')
  draft.balance = { ...draft.balance, id: null, by: draft.view.by, dueAtMs: null }
}

function noticeMembership(draft: RebalancerDraft): void {
  const signature = signatureOf(draft)
  if (signature === draft.balance.signature) return
  draft.queue = []
  draft.balance = {
    ...draft.balance,
    signature,
    dueAtMs: draft.nowMs + draft.config.settle.balanceMs,
    passesLeft: PASSES_MAX,
    vacancyDelayMs: VACANCY_DELAY_FIRST_MS,
  }
  if (draft.draining().size > 0) draft.drainsDueAtMs = draft.nowMs
}

function signatureOf(draft: RebalancerDraft): string {
  const { group } = draft
  const eligible = assignableMembers(group).map((entry) => Object.values(entry).join(':'))
  const keeping = [...group.members.keys()].filter((member) => group.cordons.has(member)).sort()
  const sessions = [...group.members.values()].map(({ session }) => session).sort()
  const disabled = group.disabledGroup === null ? [...group.disabledPartitions.keys()] : ['all']
  return [eligible, keeping, sessions, disabled, group.incarnation].join(' | ')
}

/** Frozen: what is not asked for yet is planned anew when the freeze ends. */
function holdBalance(draft: RebalancerDraft): void {
  const { id } = draft.balance
  if (id === null || !queueFacts(draft.queue).byId.has(id)) return
  draft.queue = draft.queue.filter((move) => move.reason !== 'balance')
  draft.balance = { ...draft.balance, dueAtMs: draft.nowMs }
}

function makePlan(draft: RebalancerDraft, balanceDue: boolean): void {
  const draining = draft.draining()
  const { moves, vacancies } = assignGroup(draft.group, draft.view.orderOf, { leaving: draining })
  const id = draft.balance.id ?? `balance-${draft.view.stamp.operation}`
  const needed = moves.filter(({ partition, from }) => isMovable(draft, partition, from))
  const drains = needed.filter(({ from }) => draining.has(from))
  const balancing = balanceDue ? needed.filter(({ from }) => !draining.has(from)) : []
  const kept = balanceDue ? [] : draft.queue.filter((move) => move.reason === 'balance')
  const taken = new Set(drains.map(({ partition }) => partition))
  draft.queue = inBlocks([
    ...drains.map((move) => drainMove(draft, move)),
    ...kept.filter(({ partition }) => !taken.has(partition)),
    ...balancing.map((move) => ({ id, reason: 'balance' as const, by: draft.balance.by, ...move })),
  ])
  announce(draft, 'drain-member', drains.length)
  announce(draft, 'balance', balancing.length)
  draft.drainsDueAtMs = null
  if (!balanceDue) return
  const isUnderWay = ({ partition }: AssignedMove) =>
    draft.moves.has(partition) || draft.isCommitting(partition)
  const { vacancyDelayMs, passesLeft } = draft.balance
  const isOperators = draft.group.rebalances.has(id)
  draft.balance = {
    ...draft.balance,
    id,
    incomplete: moves.some(isUnderWay),
    passesLeft: passesLeft - 1,
    dueAtMs: isOperators || vacancies.length === 0 ? null : draft.nowMs + vacancyDelayMs,
    vacancyDelayMs: Math.min(VACANCY_DELAY_MAX_MS, vacancyDelayMs * 2),
  }
}

function drainMove(draft: RebalancerDraft, move: AssignedMove): QueuedMove {
  for (const { id, kind, state, by } of draft.group.rebalances.values()) {
    if (kind.type === 'drain' && state === 'running' && kind.member === move.from) {
      return { id, reason: 'drain-member', by, ...move }
    }
  }
  return { id: 'drain', reason: 'drain-member', by: draft.view.by, ...move }
}

function announce(draft: RebalancerDraft, reason: QueuedMove['reason'], moves: number): void {
  if (moves > 0) draft.actions.push({ type: 'plan-made', reason, moves })
}

/** Through with the plan: done, or due once more for what was skipped. */
function endBalance(draft: RebalancerDraft): void {
  const { id, dueAtMs, incomplete, passesLeft } = draft.balance
  if (id === null || dueAtMs !== null || draft.remaining(id) > 0) return
  const isWaiting = [...draft.moves.values()].some(({ overdue }) => !overdue)
  if (incomplete && passesLeft > 0 && isWaiting) return
  if (incomplete && passesLeft > 0) {
    const againAtMs = draft.nowMs + draft.config.settle.balanceMs
    draft.balance = { ...draft.balance, incomplete: false, dueAtMs: againAtMs }
    return
  }
  // An operator's rebalance ends its balance itself, once that is written down.
  if (!draft.group.rebalances.has(id)) dropBalance(draft)
}
