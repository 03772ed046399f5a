/**
 * The end of a hand-over: its commit is under way until etcd said what became of it. The token counts as
 * given up since the commit was sent, so nothing here ever reopens the old grant.
 *
 * A drained grant ends with exactly one `release`, whatever became of the commit. One that ended by
 * force was already lost, one that never began has nobody to tell: both end without.
 */
import type { StoredRecord } from './commit.ts'
import type {
  As,
  GiveUp,
  OwnershipAction,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { ask, isCommit, isGrant, stay, to } from './ownership-state.ts'
import { granteeFor, handOverCommit, notice } from './ownership-transitions.ts'
import { recordOwner } from './partition-record.ts'
import { comparePositions } from './token.ts'

export function stepHandingOver(
  seat: Seat,
  now: As<'handing-over'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { commit, grant } = now
  switch (event.type) {
    case 'session-ended':
      return to(seat, { status: 'absent' }, release(now, null, nowMs))
    case 'committed':
      if (event.operation !== commit.next.operation) return stay(seat)
      return handedOver(
        seat,
        now,
        { record: commit.next, raw: commit.value },
        false,
        context,
        nowMs,
      )
    case 'unsettled':
      return event.operation === commit.next.operation ? ask(seat, context) : stay(seat)
    case 'seen': {
      const { stored } = event
      // A higher position stands for good; that of a self-grant may by now carry the next revoke.
      const isOver =
        isCommit(stored, commit) || (stored !== null && comparePositions(stored.record, grant) > 0)
      return isOver ? handedOver(seat, now, stored, false, context, nowMs) : stay(seat)
    }
    case 'refused':
      if (event.operation !== commit.next.operation) return stay(seat)
      return settleHandOver(seat, now, event.stands, true, context, nowMs)
    case 'refused-all': {
      if (event.operation !== commit.next.operation) return stay(seat)
      // The grantee died, may not receive, or the incarnation rose. Vacating requires none of that.
      return sendAgain(seat, now, now.stored, null, context)
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
    return handedOver(seat, now, stands, true, context, nowMs)
  }
  const unchanged = stands.raw === commit.expected
  if (unchanged && !refused) {
    return to(seat, now, [{ type: 'commit', commit, purpose: 'hand-over' }])
  }
  // Same record, so a requirement failed: the grantee died, or may not receive. Let elections decide.
  if (unchanged) return sendAgain(seat, now, stands, null, context)
  const { record } = stands
  const halted = record.phase === 'halted' && record.incarnation >= context.incarnation
  if (halted) return handedOver(seat, now, stands, true, context, nowMs)
  const asked = record.phase === 'revoking' ? record.move : now.giveUp
  const giveUp: GiveUp = { to: asked.to, reason: asked.reason }
  return sendAgain(seat, { ...now, giveUp }, stands, giveUp.to, context)
}

function sendAgain(
  seat: Seat,
  now: As<'handing-over'>,
  stored: StoredRecord,
  target: GiveUp['to'],
  context: OwnershipContext,
): OwnershipStep {
  const grantee = granteeFor(target, context)
  const commit = handOverCommit(stored, grantee, now.grant.owner, now.ending, context)
  return to(seat, { ...now, stored, commit }, [{ type: 'commit', commit, purpose: 'hand-over' }])
}

/** Done, or moved on without me; `stands` is what is there now. A grant to myself begins anew. */
function handedOver(
  seat: Seat,
  now: As<'handing-over'>,
  stands: StoredRecord | null,
  certain: boolean,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const absent = to(seat, { status: 'absent' }, []).seat
  const step = notice(absent, stands, certain, context, nowMs)
  const owner = recordOwner(stands?.record ?? null)
  return { ...step, actions: [...release(now, owner?.member ?? null, nowMs), ...step.actions] }
}

function release(
  now: As<'handing-over'>,
  member: GiveUp['to'],
  nowMs: number,
): readonly OwnershipAction[] {
  if (now.ending !== 'drained') return []
  const { drainMs, sentAtMs } = now
  return [{ type: 'release', to: member, drainMs, handOffMs: nowMs - sentAtMs }]
}
