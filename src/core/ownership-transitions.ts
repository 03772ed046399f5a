/**
 * The changes of ownership that more than one state makes: meeting a record that names me, adopting a
 * grant, draining, sending a hand-over, losing, halting. Which state makes which is in `ownership.ts`.
 */
import type { Commit, StoredRecord } from './commit.ts'
import { force, halt, handOver, vacate } from './commit.ts'
import type { MemberName } from './ids.ts'
import type {
  As,
  Ending,
  GiveUp,
  Held,
  LostWhy,
  Ownership,
  OwnershipAction,
  OwnershipContext,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { ask, grantOf, isMine, stay, to } from './ownership-state.ts'
import type { Owner, PartitionRecord } from './partition-record.ts'
import type { Position } from './token.ts'
import { comparePositions } from './token.ts'

/**
 * An absent seat meets a record. One that names me is adopted when it is new, moved on when its
 * incarnation is over, and halted when it is one that I remember and do not hold; that last only on
 * the word of a transaction (`certain`), since a stale map looks the same.
 */
export function notice(
  seat: Seat,
  stored: StoredRecord | null,
  certain: boolean,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { me } = context
  if (me === null || stored === null) return stay(seat)
  const { record } = stored
  if (record.phase === 'vacant' || !isMine(record, me)) return stay(seat)
  if (record.incarnation < context.incarnation) return moveOn(seat, stored, record, context, nowMs)
  if (record.phase === 'halted') return stay(seat)
  if (comparePositions(record, seat.highest) > 0) return adopt(seat, stored, record, context, nowMs)
  if (!certain) return ask(seat, context)
  return sendHalt(seat, stored, me, seat.highest, context)
}

type Named<Phase extends PartitionRecord['phase']> = PartitionRecord & { readonly phase: Phase }

/** Takes a grant; one that is to be given up again is skipped, not acquired. */
function adopt(
  seat: Seat,
  stored: StoredRecord,
  record: Named<'owned' | 'revoking'>,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const grant = grantOf(record)
  const next: Seat = { ...seat, highest: positionOf(record) }
  if (record.phase === 'revoking') {
    const giveUp: GiveUp = { to: record.move.to, reason: record.move.reason }
    return sendHandOver(next, { grant, stored, giveUp }, 'unused', 0, context, nowMs)
  }
  const overdueAtMs = nowMs + context.acquireDeadlineMs
  return to(next, { status: 'acquiring', grant, stored, overdueAtMs }, [{ type: 'begin', grant }])
}

/** A record of an incarnation that is over is a move that is due; nothing runs under it here. */
function moveOn(
  seat: Seat,
  stored: StoredRecord,
  record: Named<'owned' | 'revoking' | 'halted'>,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const isNew = comparePositions(record, seat.highest) > 0
  const next: Seat = isNew ? { ...seat, highest: positionOf(record) } : seat
  const giveUp: GiveUp =
    record.phase === 'revoking'
      ? { to: record.move.to, reason: record.move.reason }
      : { to: record.owner.member, reason: 'incarnation' }
  const held = { grant: grantOf(record), stored, giveUp }
  return sendHandOver(next, held, 'unused', 0, context, nowMs)
}

export function drain(
  seat: Seat,
  now: Held,
  giveUp: GiveUp,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { grant, stored } = now
  const overdueAtMs = nowMs + context.drainDeadlineMs
  const next: Ownership = { status: 'draining', grant, stored, giveUp, sinceMs: nowMs, overdueAtMs }
  return to(seat, next, [{ type: 'drain', giveUp }])
}

/** `acquire` failed or overran: nothing was admitted, so there is nothing to drain. */
export function giveUpUnused(
  seat: Seat,
  now: As<'acquiring' | 'serving'>,
  giveUp: GiveUp,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  if (now.status !== 'acquiring') return stay(seat)
  const step = sendHandOver(seat, { ...now, giveUp }, 'unused', 0, context, nowMs)
  return { ...step, actions: [{ type: 'lose', why: 'acquire-overdue' }, ...step.actions] }
}

export function sendHandOver(
  seat: Seat,
  now: Held & { readonly giveUp: GiveUp },
  ending: Ending,
  drainMs: number,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { grant, stored, giveUp } = now
  const commit = handOverCommit(
    stored,
    granteeFor(giveUp.to, context),
    grant.owner,
    ending,
    context,
  )
  return to(
    seat,
    { status: 'handing-over', grant, stored, giveUp, ending, commit, drainMs, sentAtMs: nowMs },
    [{ type: 'commit', commit, purpose: 'hand-over' }],
  )
}

/** To nobody: the record goes vacant, which requires nothing but the record itself. */
export function handOverCommit(
  stored: StoredRecord,
  target: Owner | null,
  owner: Owner,
  ending: Ending,
  context: OwnershipContext,
): Commit {
  const { partition, incarnation, stamp } = context
  // A map behind the record's own incarnation (a restored store) knows of no grant to make.
  const isBehind = incarnation < stored.record.incarnation
  if (target === null || isBehind) return vacate(partition, stored, stamp)
  if (ending !== 'forced') return handOver(partition, stored, target, incarnation, stamp)
  const { member, session } = owner
  return force(
    partition,
    stored,
    target,
    incarnation,
    { type: 'session-alive', member, session },
    stamp,
  )
}

export function granteeFor(member: MemberName | null, context: OwnershipContext): Owner | null {
  return member === null ? null : context.granteeOf(member)
}

/** Writes `halted`; nothing of it runs here any more. */
export function sendHalt(
  seat: Seat,
  stored: StoredRecord & { readonly record: PartitionRecord },
  me: Owner,
  highest: Position,
  context: OwnershipContext,
  before: readonly OwnershipAction[] = [],
): OwnershipStep {
  const { record } = stored
  if (record.phase === 'vacant') return stay(seat)
  const commit = halt(context.partition, stored, me, 'fence-ahead', context.stamp, highest)
  return to(seat, { status: 'halting', grant: grantOf(record), commit, highest }, [
    ...before,
    { type: 'commit', commit, purpose: 'halt' },
  ])
}

export function suspect(
  seat: Seat,
  now: As<'acquiring' | 'serving'>,
  why: 'higher-generation' | 'changed-record',
  context: OwnershipContext,
): OwnershipStep {
  if (now.status === 'acquiring' || now.trust === 'settling') return ask(seat, context)
  return ask({ ...seat, now: { ...now, trust: 'settling' } }, context, [
    { type: 'suspend-gate', why },
  ])
}

export function trusted(now: As<'acquiring' | 'serving'>): As<'acquiring' | 'serving'> {
  return now.status === 'serving' && now.trust === 'settling' ? { ...now, trust: 'sure' } : now
}

export function lose(seat: Seat, why: LostWhy): OwnershipStep {
  return to(seat, { status: 'absent' }, [{ type: 'lose', why }])
}

/** The record names another grant. It may be one of mine: a later one, or a restored one. */
export function superseded(
  seat: Seat,
  stands: StoredRecord | null,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const lost = lose(seat, 'superseded')
  const step = notice(lost.seat, stands, true, context, nowMs)
  return { ...step, actions: [...lost.actions, ...step.actions] }
}

function positionOf({ incarnation, generation }: Position): Position {
  return { incarnation, generation }
}
