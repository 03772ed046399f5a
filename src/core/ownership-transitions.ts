/**
 * The changes of ownership that more than one state makes: adopting a grant, draining, sending a
 * hand-over, losing, halting. Which state makes which is in `ownership.ts`.
 */
import type { Commit, StoredRecord } from './commit.ts'
import { force, halt, handOver, vacate } from './commit.ts'
import type { MemberName } from './ids.ts'
import type {
  As,
  GiveUp,
  Grant,
  Held,
  LostWhy,
  Ownership,
  OwnershipContext,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { stay, to } from './ownership-state.ts'
import type { Owner } from './partition-record.ts'
import type { Position } from './token.ts'

/** Takes a grant that names me; one that is to be given up again is skipped, not acquired. */
export function adopt(
  seat: Seat,
  stored: StoredRecord,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { record } = stored
  if (record.phase !== 'owned' && record.phase !== 'revoking') return stay(seat)
  const { incarnation, generation, owner, how } = record
  const grant: Grant = { incarnation, generation, owner, how }
  const next: Seat = { ...seat, highest: { incarnation, generation } }
  if (record.phase === 'revoking' || incarnation < context.incarnation) {
    const giveUp: GiveUp =
      record.phase === 'revoking'
        ? { to: record.move.to, reason: record.move.reason }
        : { to: owner.member, reason: 'incarnation' }
    return sendHandOver(next, { grant, stored, giveUp }, 0, context, nowMs)
  }
  const overdueAtMs = nowMs + context.acquireDeadlineMs
  return to(next, { status: 'acquiring', grant, stored, overdueAtMs }, [{ type: 'begin', grant }])
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
  const step = sendHandOver(seat, { ...now, giveUp }, 0, context, nowMs)
  return { ...step, actions: [{ type: 'lose', why: 'acquire-overdue' }, ...step.actions] }
}

export function sendHandOver(
  seat: Seat,
  now: Held & { readonly giveUp: GiveUp },
  drainMs: number,
  context: OwnershipContext,
  nowMs: number,
  how: 'drained' | 'forced' = 'drained',
): OwnershipStep {
  const { grant, stored, giveUp } = now
  const target = granteeFor(giveUp.to, context)
  const commit =
    how === 'forced' && target !== null && target.member !== grant.owner.member
      ? forceCommit(stored, target, grant, context)
      : handOverCommit(stored, target, context)
  return to(
    seat,
    { status: 'handing-over', grant, stored, giveUp, commit, drainMs, sentAtMs: nowMs },
    [{ type: 'commit', commit, purpose: 'hand-over' }],
  )
}

export function handOverCommit(
  stored: StoredRecord,
  target: Owner | null,
  context: OwnershipContext,
): Commit {
  const { partition, incarnation, stamp } = context
  return target === null
    ? vacate(partition, stored, stamp)
    : handOver(partition, stored, target, incarnation, stamp)
}

function forceCommit(
  stored: StoredRecord,
  target: Owner,
  grant: Grant,
  context: OwnershipContext,
): Commit {
  const { partition, incarnation, stamp } = context
  const by = { type: 'session-alive', ...grant.owner } as const
  return force(partition, stored, target, incarnation, by, stamp)
}

export function granteeFor(member: MemberName | null, context: OwnershipContext): Owner | null {
  return member === null ? null : context.granteeOf(member)
}

export function haltHere(
  seat: Seat,
  stored: StoredRecord,
  me: Owner,
  highest: Position,
  context: OwnershipContext,
): OwnershipStep {
  const commit = halt(context.partition, stored, me, 'fence-ahead', context.stamp)
  const known = seat.now.status === 'absent' ? [] : [{ type: 'lose', why: 'halted' } as const]
  return to({ ...seat, now: { status: 'absent' } }, { status: 'absent' }, [
    ...known,
    { type: 'fence-ahead', highest },
    { type: 'commit', commit, purpose: 'halt' },
  ])
}

export function suspect(
  seat: Seat,
  now: As<'acquiring' | 'serving'>,
  why: 'higher-generation' | 'changed-record',
): OwnershipStep {
  if (now.status === 'acquiring') return { ...stay(seat), actions: [{ type: 'confirm' }] }
  if (now.trust === 'settling') return { ...stay(seat), actions: [{ type: 'confirm' }] }
  return to(seat, { ...now, trust: 'settling' }, [
    { type: 'suspend-gate', why },
    { type: 'confirm' },
  ])
}

export function trusted(now: As<'acquiring' | 'serving'>): As<'acquiring' | 'serving'> {
  return now.status === 'serving' && now.trust === 'settling' ? { ...now, trust: 'sure' } : now
}

export function lose(seat: Seat, why: LostWhy): OwnershipStep {
  return to(seat, { status: 'absent' }, [{ type: 'lose', why }])
}
