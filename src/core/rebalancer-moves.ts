/**
 * Moves that were asked for: seen, retargeted, overdue, ended.
 *
 *   asked for ──record shows revoking──▶ under way ──record shows anything else──▶ ended
 *       └──refused, or the record moved on──▶ ended (refused)
 *
 * The rebalancer never grants a drained partition: the owner does. It only rewrites `to` (a target that
 * died or may not receive), at most MOVE_REWRITES_MAX times, because each rewrite makes the owner's grant
 * fail once; and past the drain's deadline it acts by the group's policy. The owner runs the same
 * deadline, so for the two policies that act the rebalancer gives it a head start.
 */
import type { StoredRecord } from './commit.ts'
import { force, retarget, vacate } from './commit.ts'
import { assignableMembers, assignGroup } from './group-assignment.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { Owner } from './partition-record.ts'
import { MOVE_REWRITES_MAX, recordOwner } from './partition-record.ts'
import type { RebalancerDraft } from './rebalancer-draft.ts'
import type { MoveOutcome, Revoking, TrackedMove } from './rebalancer-state.ts'

/** How much longer than the owner the rebalancer waits before it acts on an overdue drain. */
export const HEAD_START_MS = 500
/** How long a move rests for which no target can be found. */
const NO_TARGET_REST_MS = 2000

type StoredRevoking = StoredRecord & { readonly record: Revoking }

/** Brings what is known of the partition's move in step with its record. */
export function followPartition(draft: RebalancerDraft, partition: PartitionId): void {
  const commit = draft.commits.get(partition)
  // The text that a commit compares is gone for good: it has landed, or never will.
  if (commit !== undefined && commit.expected !== draft.group.text(partition)) {
    draft.commits.delete(partition)
  }
  const known = draft.moves.get(partition)
  const revoking = storedRevoking(draft, partition)
  if (revoking !== null) {
    draft.moves.set(partition, trackedFrom(revoking.record, known, draft.nowMs))
    return
  }
  if (known === undefined) return
  if (known.seenAtMs === null && draft.isCommitting(partition)) return
  draft.moves.delete(partition)
  end(draft, partition, known, outcomeOf(draft.group.record(partition), known))
}

/** A new `to` for each move whose target cannot receive: the assignor's, as if nobody held it. */
export function retargetMoves(draft: RebalancerDraft): void {
  const orphans: [PartitionId, TrackedMove][] = []
  for (const [partition, move] of draft.moves) {
    if (move.to !== null && draft.canReceive(move.to)) continue
    if (!isUnderWay(draft, move) || draft.isCommitting(partition)) continue
    if (draft.isBusy(targetSlot(partition)) || move.starved || isCancelling(draft, move)) continue
    orphans.push([partition, move])
  }
  if (orphans.length === 0) return
  const { targets } = assignGroup(draft.group, draft.view.orderOf, {
    leaving: draft.draining(),
    given: new Set(orphans.map(([partition]) => partition)),
  })
  for (const [partition, move] of orphans) {
    const target = draft.mayHaveOwner(partition) ? (targets[partition] ?? null) : null
    if (target !== null && draft.canReceive(target)) rewriteTarget(draft, partition, move, target)
    // Nobody to name: the owner commits vacant after its drain, and elections decide.
    else draft.rest(targetSlot(partition), NO_TARGET_REST_MS)
  }
}

/** Rewrites `to`, unless that was done too often; then the move goes where it was going. */
export function rewriteTarget(
  draft: RebalancerDraft,
  partition: PartitionId,
  move: TrackedMove,
  target: MemberName,
): void {
  const stored = storedRevoking(draft, partition)
  if (stored === null || draft.isCommitting(partition) || move.to === target) return
  if (move.rewrites >= MOVE_REWRITES_MAX) {
    if (move.starved) return
    draft.moves.set(partition, { ...move, starved: true })
    draft.actions.push({
      type: 'alarm',
      code: 'moves-starved',
      detail: `partition ${partition}: the target of move ${move.id} was rewritten ${move.rewrites} times`,
    })
    return
  }
  draft.commit(retarget(partition, stored, target, draft.session, draft.stamp(partition)))
}

/** Past the deadline: an alarm, and what the policy says. */
export function enforceDeadlines(draft: RebalancerDraft): void {
  const { deadlineMs, policy } = draft.config.drain
  const waitMs = policy === 'wait' ? deadlineMs : deadlineMs + HEAD_START_MS
  for (const [partition, move] of draft.moves) {
    if (!isUnderWay(draft, move)) continue
    const dueAtMs = (move.seenAtMs ?? draft.nowMs) + waitMs
    if (draft.nowMs < dueAtMs) {
      draft.wakeAt(dueAtMs)
      continue
    }
    if (!move.overdue) raiseOverdue(draft, partition, move)
    switch (policy) {
      case 'wait':
        break
      case 'fence':
        forceMove(draft, partition, move)
        break
      case 'evict':
        markForEviction(draft, partition, move)
        break
      default:
        policy satisfies never
    }
  }
}

/** Seen, and its owner still lives: of the others, elections decide. */
export function isUnderWay(draft: RebalancerDraft, move: TrackedMove): boolean {
  return move.seenAtMs !== null && draft.group.isLive(move.from)
}

function raiseOverdue(draft: RebalancerDraft, partition: PartitionId, move: TrackedMove): void {
  const { policy } = draft.config.drain
  draft.moves.set(partition, { ...move, overdue: true })
  draft.actions.push({
    type: 'alarm',
    code: 'drain-overdue',
    detail: `partition ${partition} at ${move.from.member}: policy ${policy}`,
  })
}

/** One compare-and-set to a live grantee at g+1, or to vacant where none lives. Fenced groups only. */
function forceMove(draft: RebalancerDraft, partition: PartitionId, move: TrackedMove): void {
  const stored = storedRevoking(draft, partition)
  const { incarnation } = draft.group
  if (!draft.config.fenced || stored === null || incarnation === null) return
  if (draft.isCommitting(partition)) return
  const by = { type: 'rebalancer', session: draft.session } as const
  const grantee = draft.mayHaveOwner(partition) ? forcedGrantee(draft, partition, move) : null
  draft.commit(
    grantee === null
      ? vacate(partition, stored, draft.stamp(partition), [by])
      : force(partition, stored, grantee, incarnation, by, draft.stamp(partition)),
  )
}

/** The target, else the first of the ring order; never the owner whose drain is stuck. */
function forcedGrantee(
  draft: RebalancerDraft,
  partition: PartitionId,
  move: TrackedMove,
): Owner | null {
  const others = assignableMembers(draft.group)
    .map(({ member }) => member)
    .filter((member) => member !== move.from.member)
  const wanted = move.to !== null && others.includes(move.to) ? move.to : null
  const member = wanted ?? draft.view.orderOf(others).order(partition, 1)[0]
  const session = member === undefined ? undefined : draft.group.members.get(member)?.session
  return member === undefined || session === undefined ? null : { member, session }
}

function markForEviction(draft: RebalancerDraft, partition: PartitionId, move: TrackedMove): void {
  const { member, session } = move.from
  const slot = `eviction/${member}`
  if (draft.group.evictions.has(member) || draft.isBusy(slot)) return
  const mark = {
    by: draft.view.by,
    why: `partition ${partition} overran its drain deadline`,
    atMs: draft.view.wallMs,
    untilMs: null,
  }
  draft.write(slot, { type: 'evict', member, session, mark })
}

function trackedFrom(record: Revoking, known: TrackedMove | undefined, nowMs: number): TrackedMove {
  const { id, to, reason, rewrites } = record.move
  const same = known !== undefined && known.id === id && known.from.session === record.owner.session
  return {
    id,
    to,
    reason,
    rewrites,
    from: { member: record.owner.member, session: record.owner.session },
    askedAtMs: same ? known.askedAtMs : nowMs,
    seenAtMs: same ? (known.seenAtMs ?? nowMs) : nowMs,
    overdue: same && known.overdue,
    starved: same && known.starved,
  }
}

function outcomeOf(stored: StoredRecord | null, move: TrackedMove): MoveOutcome {
  const owner = recordOwner(stored?.record ?? null)
  if (move.seenAtMs === null || stored?.record.phase !== 'owned' || owner === null) return 'refused'
  if (stored.record.how === 'forced') return 'forced'
  if (owner.member === move.to) {
    return move.to === move.from.member && move.rewrites > 0 ? 'cancelled' : 'moved'
  }
  return owner.member === move.from.member ? 'cancelled' : 'refused'
}

function end(
  draft: RebalancerDraft,
  partition: PartitionId,
  move: TrackedMove,
  outcome: MoveOutcome,
): void {
  const { id, reason, askedAtMs } = move
  draft.actions.push({
    type: 'move-ended',
    partition,
    outcome,
    reason,
    tookMs: draft.nowMs - askedAtMs,
  })
  if (id === draft.balance.id && outcome !== 'moved') {
    draft.balance = { ...draft.balance, incomplete: true }
  }
}

function isCancelling(draft: RebalancerDraft, move: TrackedMove): boolean {
  return draft.group.rebalances.get(move.id)?.state === 'cancelling'
}

/** Null in any other phase; only then nothing needs to be decoded. */
function storedRevoking(draft: RebalancerDraft, partition: PartitionId): StoredRevoking | null {
  if (draft.group.phase(partition) !== 'revoking') return null
  const stored = draft.group.record(partition)
  return stored?.record.phase === 'revoking' ? { raw: stored.raw, record: stored.record } : null
}

function targetSlot(partition: PartitionId): string {
  return `target/${partition}`
}
