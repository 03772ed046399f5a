/**
 * Draining: the gate refuses new work, what is in flight finishes. The hand-over is sent once the host
 * says `drained`, or by force when the deadline passes in a fenced group; until then the record may be
 * retargeted any number of times, and only the last target counts.
 */
import type {
  As,
  OwnershipAction,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { ask, isGrant, stay, to } from './ownership-state.ts'
import { lose, sendHandOver, superseded } from './ownership-transitions.ts'
import { comparePositions } from './token.ts'

export function stepDraining(
  seat: Seat,
  now: As<'draining'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  switch (event.type) {
    case 'session-ended':
      return lose(seat, 'session-ended')
    case 'drained':
      return sendHandOver(seat, now, 'drained', nowMs - now.sinceMs, context, nowMs)
    case 'wake':
      if (now.overdueAtMs === null || nowMs < now.overdueAtMs) return stay(seat)
      return overdue(seat, now, context, nowMs)
    case 'heard-higher':
      return comparePositions(event.position, now.grant) > 0 ? ask(seat, context) : stay(seat)
    case 'seen':
    case 'confirmed':
      if (!isGrant(event.stored, now.grant)) {
        if (event.type === 'confirmed') return superseded(seat, event.stored, context, nowMs)
        return ask(seat, context)
      }
      if (event.stored.record.phase === 'halted') return lose(seat, 'halted')
      return to(seat, followMove({ ...now, stored: event.stored }), [])
    default:
      return stay(seat)
  }
}

/** A cancel or retarget rewrites `to` while the drain goes on. */
function followMove(now: As<'draining'>): As<'draining'> {
  const { record } = now.stored
  if (record.phase !== 'revoking') return now
  return { ...now, giveUp: { to: record.move.to, reason: record.move.reason } }
}

function overdue(
  seat: Seat,
  now: As<'draining'>,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { drainPolicy, fenced } = context
  // Only a fence makes undrained work harmless.
  const policy = drainPolicy === 'fence' && !fenced ? 'wait' : drainPolicy
  const alarm: OwnershipAction = { type: 'drain-overdue', policy }
  switch (policy) {
    case 'wait':
      return to(seat, { ...now, overdueAtMs: null }, [alarm])
    case 'evict':
      // The gate ends with the session; code that still runs ends with the process.
      return to(seat, { ...now, overdueAtMs: null }, [alarm, { type: 'end-session' }])
    case 'fence': {
      const step = sendHandOver(seat, now, 'forced', nowMs - now.sinceMs, context, nowMs)
      return { ...step, actions: [alarm, { type: 'lose', why: 'forced' }, ...step.actions] }
    }
    default:
      return policy satisfies never
  }
}
