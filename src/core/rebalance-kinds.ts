/**
 * The three kinds of operators' rebalance: one look at each says how it goes on. What the verdict means
 * for its record is in `rebalance-requests.ts`.
 */
import type { MemberName } from './ids.ts'
import type { RebalanceKind, RebalanceRecord } from './operator-records.ts'
import { isFinished } from './operator-records.ts'
import type { RebalancerDraft } from './rebalancer-draft.ts'
import { rewriteTarget } from './rebalancer-moves.ts'
import { beginBalance, countBalanceMoves, isMovable, requestMove } from './rebalancer-plan.ts'
import type { RequestMemory } from './rebalancer-state.ts'

export type Verdict =
  /** Nothing to write now. */
  | { readonly type: 'nothing' }
  /** It may begin: so many moves, and for a move the generation that it moves on from. */
  | { readonly type: 'begin'; readonly planned: number; readonly fromGeneration?: number }
  /** So many moves are left, and what they wait for. */
  | { readonly type: 'progress'; readonly left: number; readonly why: string }
  /** It cannot go on yet. */
  | { readonly type: 'waits'; readonly why: string }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly why: string }

type Of<Type extends RebalanceKind['type']> = RebalanceKind & { readonly type: Type }

/** How often it is looked whether a drain left something behind. */
const LOOK_INTERVAL_MS = 1000
const NOTHING: Verdict = { type: 'nothing' }
const UNDER_WAY: Verdict = { type: 'progress', left: 1, why: '' }

export function judgeBalance(draft: RebalancerDraft, record: RebalanceRecord): Verdict {
  const { id, by } = record
  if (draft.group.freeze !== null) return { type: 'waits', why: 'the group is frozen' }
  const current = draft.group.rebalances.get(draft.balance.id ?? '')
  if (current !== undefined && current.id !== id && !isFinished(current.state)) {
    return { type: 'waits', why: `rebalance ${current.id} comes first` }
  }
  if (record.state === 'requested') {
    // Counting is a plan of the whole group: not while the answer to the last one is awaited.
    if (draft.isBusy(requestSlot(id))) return NOTHING
    return { type: 'begin', planned: countBalanceMoves(draft) }
  }
  if (draft.balance.id !== id) {
    beginBalance(draft, id, by)
    return NOTHING
  }
  const left = draft.remaining(id)
  if (left === 0 && draft.balance.dueAtMs === null) return { type: 'done' }
  return { type: 'progress', left, why: '' }
}

/** Begins an explicit move, follows it, or says how it ended. */
export function judgeMove(
  draft: RebalancerDraft,
  record: RebalanceRecord,
  kind: Of<'move'>,
): Verdict {
  const { partition, to } = kind
  const { id, by, fromGeneration } = record
  const generation = draft.group.record(partition)?.record.generation ?? 0
  if (partition >= draft.group.partitions) return failed(`there is no partition ${partition}`)
  if (!draft.mayHaveOwner(partition)) return failed('the partition is disabled or halted')
  const owner = draft.group.liveOwner(partition)
  if (owner === null) return { type: 'waits', why: 'the partition has no live owner yet' }
  if (fromGeneration !== undefined && generation > fromGeneration) {
    return owner.member === to ? { type: 'done' } : failed(`it went to ${owner.member}`)
  }
  const pending = draft.moves.get(partition)
  // Its own move finds another target by itself when this one dies.
  if (pending?.id === id) return UNDER_WAY
  if (!draft.canReceive(to)) return failed(`member ${to} is not live, or may not receive`)
  if (fromGeneration === undefined) return { type: 'begin', planned: 1, fromGeneration: generation }
  if (pending !== undefined) {
    // Somebody else's move is under way: it goes where the operator wants it.
    if (pending.starved)
      return { type: 'waits', why: `move ${pending.id} cannot be turned any more` }
    rewriteTarget(draft, partition, pending, to)
    return UNDER_WAY
  }
  if (!isMovable(draft, partition, owner.member)) {
    return { type: 'waits', why: `its owner ${owner.member} is giving it up` }
  }
  requestMove(draft, { partition, from: owner.member, to, id, reason: 'operator', by })
  return UNDER_WAY
}

export function judgeDrain(
  draft: RebalancerDraft,
  record: RebalanceRecord,
  kind: Of<'drain'>,
  memory: RequestMemory,
): Verdict {
  const { id } = record
  const { member } = kind
  const isCordoned = draft.group.cordons.has(member)
  if (record.state === 'requested') {
    if (isCordoned) return { type: 'begin', planned: ownedBy(draft, member) }
    cordon(draft, record, member)
    return NOTHING
  }
  if (!isCordoned) return failed(`the cordon of ${member} was removed`)
  const waiting = draft.remaining(id)
  if (waiting > 0) return { type: 'progress', left: waiting, why: '' }
  if (draft.nowMs < memory.lookAtMs) {
    draft.wakeAt(memory.lookAtMs)
    return NOTHING
  }
  const left = ownedBy(draft, member)
  if (left === 0) return { type: 'done' }
  const lookAtMs = draft.nowMs + LOOK_INTERVAL_MS
  draft.requests.set(id, { ...memory, lookAtMs })
  draft.wakeAt(lookAtMs)
  draft.drainsDueAtMs = draft.nowMs
  // The first look only starts the plan.
  if (memory.lookAtMs === 0) return NOTHING
  return { type: 'progress', left, why: `${left} partitions wait for a member that may take them` }
}

/** How a drain's own cordon is told from an operator's. */
export function cordonReason(id: string): string {
  return `drain ${id}`
}

export function requestSlot(id: string): string {
  return `rebalance/${id}`
}

function cordon(draft: RebalancerDraft, record: RebalanceRecord, member: MemberName): void {
  const slot = `cordon/${member}`
  if (draft.isBusy(slot)) return
  const mark = {
    by: record.by,
    why: cordonReason(record.id),
    atMs: draft.view.wallMs,
    untilMs: null,
  }
  draft.write(slot, { type: 'cordon', member, mark })
}

function ownedBy(draft: RebalancerDraft, member: MemberName): number {
  let owned = 0
  for (let partition = 0; partition < draft.group.partitions; partition += 1) {
    if (draft.group.liveOwner(partition)?.member !== member) continue
    if (draft.mayHaveOwner(partition)) owned += 1
  }
  return owned
}

function failed(why: string): Verdict {
  return { type: 'failed', why }
}
