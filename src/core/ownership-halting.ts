/**
 * Halting: etcd calls me owner at a position that cannot be mine to work under (it was restored, or a
 * resource has seen more). Nothing runs here any more; the record is being marked `halted`, so that
 * nobody runs it anywhere until the incarnation rises. The alarm follows the mark: a record that turns
 * out to have moved on meanwhile was an ordinary hand-over that I heard of late.
 */
import type { StoredRecord } from './commit.ts'
import type {
  As,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { ask, isCommit, isMine, stay, to } from './ownership-state.ts'
import { notice, sendHalt } from './ownership-transitions.ts'
import { comparePositions } from './token.ts'

export function stepHalting(
  seat: Seat,
  now: As<'halting'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { commit } = now
  switch (event.type) {
    case 'session-ended':
      return to(seat, { status: 'absent' }, [])
    case 'committed':
      return event.operation === commit.next.operation ? halted(seat, now) : stay(seat)
    case 'seen':
      return isCommit(event.stored, commit) ? halted(seat, now) : stay(seat)
    case 'unsettled':
      return event.operation === commit.next.operation ? ask(seat, context) : stay(seat)
    case 'refused-all':
      // My session is gone: its end will be told soon, and elections follow.
      return event.operation === commit.next.operation
        ? to(seat, { status: 'absent' }, [])
        : stay(seat)
    case 'refused':
      if (event.operation !== commit.next.operation) return stay(seat)
      if (event.stands?.raw === commit.expected) return to(seat, { status: 'absent' }, [])
      return settleHalt(seat, now, event.stands, context, nowMs)
    case 'confirmed':
      if (event.stored?.raw === commit.expected) {
        return to(seat, now, [{ type: 'commit', commit, purpose: 'halt' }])
      }
      return settleHalt(seat, now, event.stored, context, nowMs)
    default:
      return stay(seat)
  }
}

function settleHalt(
  seat: Seat,
  now: As<'halting'>,
  stands: StoredRecord | null,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  if (isCommit(stands, now.commit)) return halted(seat, now)
  const absent = to(seat, { status: 'absent' }, []).seat
  const { me } = context
  const still =
    me !== null &&
    stands !== null &&
    isMine(stands.record, me) &&
    stands.record.phase !== 'halted' &&
    stands.record.incarnation >= context.incarnation &&
    comparePositions(stands.record, seat.highest) <= 0
  // Only the pending move changed (a retarget): the same grant, to be halted all the same.
  if (still) return sendHalt(absent, stands, me, now.highest, context)
  return notice(absent, stands, true, context, nowMs)
}

function halted(seat: Seat, now: As<'halting'>): OwnershipStep {
  return to(seat, { status: 'absent' }, [{ type: 'fence-ahead', highest: now.highest }])
}
