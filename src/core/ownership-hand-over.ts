/**
 * The end of a hand-over: its commit is under way until etcd said what became of it. The token counts as
 * given up since the commit was sent, so nothing here ever reopens the old grant.
 */
import type { Commit, StoredRecord } from './commit.ts'
import type {
  As,
  GiveUp,
  OwnershipAction,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { isCommit, isGrant, isMine, stay, to } from './ownership-state.ts'
import { adopt, granteeFor, handOverCommit } from './ownership-transitions.ts'
import { recordOwner } from './partition-record.ts'
import { comparePositions } from './token.ts'

export function stepHandingOver(
  seat: Seat,
  now: As<'handing-over'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { commit } = now
  switch (event.type) {
    case 'session-ended':
      return to(seat, { status: 'absent' }, [])
    case 'committed':
      return event.operation === commit.next.operation
        ? handedOver(seat, now, committed(commit), context, nowMs)
        : stay(seat)
    case 'unsettled':
      return event.operation === commit.next.operation
        ? { ...stay(seat), actions: [{ type: 'confirm' }] }
        : stay(seat)
    case 'seen':
      if (isCommit(event.stored, commit)) {
        return handedOver(seat, now, event.stored, context, nowMs)
      }
      return stay(seat)
    case 'refused':
      if (event.operation !== commit.next.operation) return stay(seat)
      return settleHandOver(seat, now, event.stands, true, context, nowMs)
    case 'refused-all': {
      if (event.operation !== commit.next.operation) return stay(seat)
      // The grantee died, may not receive, or the incarnation rose. Vacating requires none of that.
      const next = handOverCommit(now.stored, null, context)
      return to(seat, { ...now, commit: next }, [
        { type: 'commit', commit: next, purpose: 'hand-over' },
      ])
    }
    case 'confirmed':
      return settleHandOver(seat, now, event.stored, false, context, nowMs)
    default:
      return stay(seat)
  }
}

function settleHandOver(
  seat: Seat,
  now: As<'handing-over'>,
  stands: StoredRecord | null,
  refused: boolean,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { commit, grant } = now
  // Ours, or another grant took its place (a forced move): what was drained is released either way.
  if (isCommit(stands, commit) || !isGrant(stands, grant)) {
    return handedOver(seat, now, stands, context, nowMs)
  }
  if (stands.record.phase === 'halted' && now.stored.record.phase !== 'halted') {
    return to(seat, { status: 'absent' }, [{ type: 'lose', why: 'halted' }])
  }
  const asked = stands.record.phase === 'revoking' ? stands.record.move : now.giveUp
  const giveUp: GiveUp = { to: asked.to, reason: asked.reason }
  const unchanged = stands.raw === commit.expected
  if (unchanged && !refused) {
    return { ...stay(seat), actions: [{ type: 'commit', commit, purpose: 'hand-over' }] }
  }
  // Same record, so a requirement failed: the grantee died, or may not receive. Let elections decide.
  const target = unchanged ? null : granteeFor(giveUp.to, context)
  const next = handOverCommit(stands, target, context)
  return to(seat, { ...now, giveUp, stored: stands, commit: next }, [
    { type: 'commit', commit: next, purpose: 'hand-over' },
  ])
}

/** Done, or moved on without me; `stands` is what is there now. A grant to myself begins anew. */
function handedOver(
  seat: Seat,
  now: As<'handing-over'>,
  stands: StoredRecord | null,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const release: OwnershipAction = {
    type: 'release',
    to: recordOwner(stands?.record ?? null)?.member ?? null,
    drainMs: now.drainMs,
    handOffMs: nowMs - now.sentAtMs,
  }
  const absent: Seat = { ...seat, now: { status: 'absent' } }
  const mine = stands !== null && context.me !== null && isMine(stands.record, context.me)
  if (!mine || comparePositions(stands.record, seat.highest) <= 0) {
    return to(absent, absent.now, [release])
  }
  const step = adopt(absent, stands, context, nowMs)
  return { ...step, actions: [release, ...step.actions] }
}

function committed(commit: Commit): StoredRecord {
  return { record: commit.next, raw: commit.value }
}
