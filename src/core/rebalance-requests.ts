/**
 * Operators' rebalances: a record each, taken up by whoever is rebalancer.
 *
 *   requested ──▶ running ──▶ done | failed
 *       └────────────┴──▶ cancelling ──▶ cancelled
 *
 *   balance   a plan over the whole group; waits while the group is frozen
 *   move      one partition to one member, at once; also to its own owner, who then grants itself anew
 *   drain     cordon the member, then move all it owns to the others
 *
 * Nothing but the records is needed to go on after a crash: a successor reads off the map what is still
 * to move, and counts from there. Progress is written at most once a second. Cancelling stops further
 * moves and turns the pending ones back to their owner, who finishes the drain that it began.
 */
import type { RebalanceRecord, RebalanceState } from './operator-records.ts'
import { isFinished, REBALANCES_KEPT } from './operator-records.ts'
import type { Verdict } from './rebalance-kinds.ts'
import {
  cordonReason,
  judgeBalance,
  judgeDrain,
  judgeMove,
  requestSlot,
} from './rebalance-kinds.ts'
import type { RebalancerDraft } from './rebalancer-draft.ts'
import { isUnderWay, rewriteTarget } from './rebalancer-moves.ts'
import { dropBalance } from './rebalancer-plan.ts'
import { queueFacts } from './rebalancer-queue.ts'
import type { RequestMemory } from './rebalancer-state.ts'

export const PROGRESS_INTERVAL_MS = 1000
const FORGET_MAX = 100

export function serveRequests(draft: RebalancerDraft): void {
  const records = [...draft.group.rebalances.values()].sort(byAge)
  for (const record of records) {
    report(draft, record)
    if (isFinished(record.state)) {
      draft.requests.delete(record.id)
      if (draft.balance.id === record.id) dropBalance(draft)
    } else if (record.state === 'cancelling') cancel(draft, record)
    else obey(draft, record, judge(draft, record, records))
  }
  forgetOldest(draft, records)
}

function judge(
  draft: RebalancerDraft,
  record: RebalanceRecord,
  records: readonly RebalanceRecord[],
): Verdict {
  const { kind } = record
  switch (kind.type) {
    case 'balance':
      return judgeBalance(draft, record)
    case 'move': {
      const newer = records.find(
        (other) =>
          other.kind.type === 'move' &&
          other.kind.partition === kind.partition &&
          !isFinished(other.state) &&
          byAge(record, other) < 0,
      )
      if (newer !== undefined) return { type: 'failed', why: `superseded by ${newer.id}` }
      return judgeMove(draft, record, kind)
    }
    case 'drain':
      return judgeDrain(draft, record, kind, memoryOf(draft, record))
    default:
      return kind satisfies never
  }
}

function obey(draft: RebalancerDraft, record: RebalanceRecord, verdict: Verdict): void {
  switch (verdict.type) {
    case 'nothing':
      return
    case 'begin': {
      const { planned, fromGeneration } = verdict
      const begun: RebalanceRecord = {
        ...record,
        planned,
        ...(fromGeneration === undefined ? {} : { fromGeneration }),
      }
      if (planned > 0) update(draft, record, { ...begun, state: 'running', note: '' })
      else update(draft, record, ended(draft, { ...begun, note: 'nothing to move' }, 'done'))
      return
    }
    case 'progress':
      writeProgress(draft, record, verdict.left, verdict.why)
      return
    case 'waits':
      if (record.note !== verdict.why) update(draft, record, { ...record, note: verdict.why })
      return
    case 'done': {
      const moved = record.planned ?? 0
      update(draft, record, ended(draft, { ...record, moved, note: '' }, 'done'))
      return
    }
    case 'failed':
      update(draft, record, ended(draft, { ...record, note: verdict.why }, 'failed'))
      return
    default:
      verdict satisfies never
  }
}

/** No further moves; those under way turn back to their owner. */
function cancel(draft: RebalancerDraft, record: RebalanceRecord): void {
  const { id, kind } = record
  if (queueFacts(draft.queue).byId.has(id)) {
    draft.queue = draft.queue.filter((move) => move.id !== id)
  }
  if (draft.balance.id === id) dropBalance(draft)
  if (kind.type === 'drain') {
    const { member } = kind
    const mark = draft.group.cordons.get(member)
    if (mark?.why === cordonReason(id)) {
      // Its own cordon goes first: a cordoned owner could not grant itself.
      const slot = `cordon/${member}`
      if (!draft.isBusy(slot)) draft.write(slot, { type: 'uncordon', member, mark })
      return
    }
  }
  for (const [partition, move] of draft.moves) {
    if (move.id !== id || !isUnderWay(draft, move)) continue
    if (draft.canReceive(move.from.member)) {
      rewriteTarget(draft, partition, move, move.from.member)
    }
  }
  if (draft.remaining(id) > 0) return
  update(draft, record, ended(draft, { ...record, note: '' }, 'cancelled'))
}

/** Counts what is done by what is left; never back. */
function writeProgress(
  draft: RebalancerDraft,
  record: RebalanceRecord,
  left: number,
  why: string,
): void {
  const moved = Math.max(record.moved, (record.planned ?? 0) - left)
  if (moved === record.moved && why === record.note) return
  const dueAtMs = memoryOf(draft, record).wroteAtMs + PROGRESS_INTERVAL_MS
  if (draft.nowMs < dueAtMs) draft.wakeAt(dueAtMs)
  else update(draft, record, { ...record, moved, note: why })
}

function update(draft: RebalancerDraft, before: RebalanceRecord, after: RebalanceRecord): void {
  const slot = requestSlot(before.id)
  if (draft.isBusy(slot)) return
  draft.requests.set(before.id, { ...memoryOf(draft, before), wroteAtMs: draft.nowMs })
  draft.write(slot, { type: 'rebalance', before, after })
}

function ended(
  draft: RebalancerDraft,
  record: RebalanceRecord,
  state: RebalanceState,
): RebalanceRecord {
  return { ...record, state, finishedAtMs: draft.view.wallMs }
}

function forgetOldest(draft: RebalancerDraft, records: readonly RebalanceRecord[]): void {
  const finished = records.filter(({ state }) => isFinished(state))
  const surplus = finished.length - REBALANCES_KEPT
  if (surplus <= 0 || draft.isBusy('forget')) return
  const oldest = finished.sort((a, b) => (a.finishedAtMs ?? 0) - (b.finishedAtMs ?? 0))
  const ids = oldest.slice(0, Math.min(surplus, FORGET_MAX)).map(({ id }) => id)
  draft.write('forget', { type: 'forget', ids })
}

/** A change of state is told when the map shows it, whoever made it; a new one is told as it is. */
function report(draft: RebalancerDraft, record: RebalanceRecord): void {
  const known = draft.requests.get(record.id)
  const isNews = known === undefined ? record.state === 'requested' : known.state !== record.state
  if (isNews) draft.actions.push({ type: 'rebalance-changed', record })
  if (!isFinished(record.state)) {
    draft.requests.set(record.id, { ...memoryOf(draft, record), state: record.state })
  }
}

function memoryOf(draft: RebalancerDraft, { id, state }: RebalanceRecord): RequestMemory {
  return draft.requests.get(id) ?? { state, wroteAtMs: draft.nowMs, lookAtMs: 0 }
}

function byAge(a: RebalanceRecord, b: RebalanceRecord): number {
  return a.requestedAtMs - b.requestedAtMs || (a.id < b.id ? -1 : 1)
}
