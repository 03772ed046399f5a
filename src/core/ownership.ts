/**
 * One partition at one member, from campaign to hand-over.
 *
 *            campaign             done                acquired
 *   absent ──────────▶ campaigning ──▶ acquiring ──────────────▶ serving
 *     ▲ ▲                  │ refused      │  │ failed | overdue    │
 *     │ └──────────────────┘              │  ▼                     │ revoked | give-up
 *     │   lost: session ended,            │ (give up)              ▼
 *     │   another grant, halted           └───────────────────▶ draining
 *     ├◀──────────────────────────────────────────────────────────┤
 *     │                                                           │ drained | forced
 *     └◀──────────────── done (or moved on) ────────────── handing-over ──to myself──▶ acquiring
 *
 * A grant may also arrive from outside (the old owner or the rebalancer granted to me): absent sees a
 * record that names my session at a position above all it remembers.
 *
 * I1  `highest` never falls: the highest position acquired, skipped or given up here. Nothing at or
 *     below it is ever acquired, so that no stale read reopens a gate (W2, V5).
 * I2  a position counts as given up when the request that gives it up is *sent*.
 * I3  the gate is open only in `serving` with `trust: 'sure'`.
 * I4  a hand-over is sent only after `drained`, except by force in a fenced group (S4, S5).
 * I5  one commit per partition is under way at most; its unknown outcome is settled by a confirming
 *     read, and sent again only on the same compare. "Not there yet" never reopens anything.
 *
 * Failure cases: a reply is lost (confirm; see `settle`); the grantee died (commit vacant instead); the
 * move was retargeted while draining or while the hand-over was under way (the refusal shows the new
 * record); another grant appears (suspect, confirm, then lost or reopened); etcd was restored and names
 * my session at a position I remember but do not hold (confirm, then halt and alarm).
 */
import type { StoredRecord } from './commit.ts'
import { elect } from './commit.ts'
import { stepHandingOver } from './ownership-hand-over.ts'
import type {
  As,
  GiveUp,
  Grant,
  OwnershipAction,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { isCommit, isGrant, isMine, stay, to } from './ownership-state.ts'
import {
  adopt,
  drain,
  giveUpUnused,
  haltHere,
  lose,
  sendHandOver,
  suspect,
  trusted,
} from './ownership-transitions.ts'
import type { Owner } from './partition-record.ts'
import { comparePositions } from './token.ts'

export function stepOwnership(
  seat: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { now } = seat
  switch (now.status) {
    case 'absent':
      return stepAbsent(seat, event, context, nowMs)
    case 'campaigning':
      return stepCampaigning(seat, now, event, context, nowMs)
    case 'acquiring':
    case 'serving':
      return stepHeld(seat, now, event, context, nowMs)
    case 'draining':
      return stepDraining(seat, now, event, context, nowMs)
    case 'handing-over':
      return stepHandingOver(seat, now, event, context, nowMs)
    default:
      return now satisfies never
  }
}

function stepAbsent(
  seat: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { me } = context
  if (me === null) return stay(seat)
  switch (event.type) {
    case 'campaign': {
      const { partition, incarnation, stamp } = context
      const commit = elect(partition, event.stored, me, incarnation, stamp)
      return to(seat, { status: 'campaigning', commit }, [
        { type: 'commit', commit, purpose: 'campaign' },
      ])
    }
    case 'seen':
    case 'confirmed': {
      const { stored } = event
      if (stored === null || !isMine(stored.record, me)) return stay(seat)
      return meetOwnRecord(seat, stored, event.type, me, context, nowMs)
    }
    default:
      return stay(seat)
  }
}

/** The record names my session, and I hold nothing. */
function meetOwnRecord(
  seat: Seat,
  stored: StoredRecord,
  how: 'seen' | 'confirmed',
  me: Owner,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { record } = stored
  const isHalted = record.phase === 'halted'
  if (!isHalted && comparePositions(record, seat.highest) > 0) {
    return adopt(seat, stored, context, nowMs)
  }
  if (record.incarnation < context.incarnation) {
    // The incarnation rose: whatever was halted or remembered, a grant to myself under it is due.
    const { incarnation, generation } = record
    const grant: Grant = { incarnation, generation, owner: me, how: 'hand-over' }
    const giveUp: GiveUp = { to: me.member, reason: 'incarnation' }
    return sendHandOver(seat, { grant, stored, giveUp }, 0, context, nowMs)
  }
  if (isHalted) return stay(seat)
  // Mine by the record, yet not above what I remember: stale, or etcd was restored.
  if (how === 'seen') return { ...stay(seat), actions: [{ type: 'confirm' }] }
  return haltHere(seat, stored, me, seat.highest, context)
}

function stepCampaigning(
  seat: Seat,
  now: As<'campaigning'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { commit } = now
  const absent: Seat = { ...seat, now: { status: 'absent' } }
  const won = (): OwnershipStep => {
    const stored = { record: commit.next, raw: commit.value }
    const step = stepAbsent(absent, { type: 'confirmed', stored }, context, nowMs)
    return { ...step, actions: [{ type: 'campaign-ended', outcome: 'won' }, ...step.actions] }
  }
  const refused = (stands: StoredRecord | null): OwnershipStep => {
    const step = stepAbsent(absent, { type: 'seen', stored: stands }, context, nowMs)
    return { ...step, actions: [{ type: 'campaign-ended', outcome: 'refused' }, ...step.actions] }
  }
  switch (event.type) {
    case 'session-ended':
      return to(seat, { status: 'absent' }, [])
    case 'committed':
      return event.operation === commit.next.operation ? won() : stay(seat)
    case 'seen':
      return isCommit(event.stored, commit) ? won() : stay(seat)
    case 'unsettled':
      return event.operation === commit.next.operation
        ? { ...stay(seat), actions: [{ type: 'confirm' }] }
        : stay(seat)
    case 'refused-all':
      // Not executed. Should an earlier sending land after all, the map will name me, and I adopt it.
      return event.operation === commit.next.operation ? refused(null) : stay(seat)
    case 'refused':
      if (event.operation !== commit.next.operation) return stay(seat)
      return isCommit(event.stands, commit) ? won() : refused(event.stands)
    case 'confirmed':
      if (isCommit(event.stored, commit)) return won()
      if ((event.stored?.raw ?? null) !== commit.expected) return refused(event.stored)
      // The old value stands: the first request may still land, so only the same one goes again.
      return { ...stay(seat), actions: [{ type: 'commit', commit, purpose: 'campaign' }] }
    default:
      return stay(seat)
  }
}

function stepHeld(
  seat: Seat,
  now: As<'acquiring' | 'serving'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  switch (event.type) {
    case 'session-ended':
      return lose(seat, 'session-ended')
    case 'acquired':
      if (now.status !== 'acquiring') return stay(seat)
      return to(seat, { status: 'serving', grant: now.grant, stored: now.stored, trust: 'sure' }, [
        { type: 'open-gate' },
      ])
    case 'acquire-failed':
      return giveUpUnused(seat, now, { to: event.to, reason: 'acquire-failed' }, context, nowMs)
    case 'wake':
      if (now.status !== 'acquiring' || nowMs < now.overdueAtMs) return stay(seat)
      return giveUpUnused(seat, now, { to: null, reason: 'acquire-failed' }, context, nowMs)
    case 'give-up':
      return drain(seat, now, event.giveUp, context, nowMs)
    case 'heard-higher':
      if (comparePositions(event.position, now.grant) <= 0) return stay(seat)
      return suspect(seat, now, 'higher-generation')
    case 'fence-ahead': {
      const { me } = context
      if (me === null) return stay(seat)
      return haltHere(seat, now.stored, me, event.highest, context)
    }
    case 'seen':
      if (!isGrant(event.stored, now.grant)) return suspect(seat, now, 'changed-record')
      return held(seat, now, event.stored, context, nowMs)
    case 'confirmed':
      if (!isGrant(event.stored, now.grant)) return lose(seat, 'superseded')
      return held(seat, trusted(now), event.stored, context, nowMs, trusted(now) !== now)
    default:
      return stay(seat)
  }
}

/** The record still names my grant: follow what it asks for. */
function held(
  seat: Seat,
  now: As<'acquiring' | 'serving'>,
  stored: StoredRecord,
  context: OwnershipContext,
  nowMs: number,
  reopened = false,
): OwnershipStep {
  const { record } = stored
  if (record.phase === 'halted') return lose(seat, 'halted')
  const current = { ...now, stored }
  if (record.phase === 'revoking') {
    const { to: target, reason } = record.move
    return drain(seat, current, { to: target, reason }, context, nowMs)
  }
  return to(seat, current, reopened ? [{ type: 'open-gate' }] : [])
}

function stepDraining(
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
      return sendHandOver(seat, now, nowMs - now.sinceMs, context, nowMs)
    case 'wake':
      if (now.overdueAtMs === null || nowMs < now.overdueAtMs) return stay(seat)
      return overdue(seat, now, context, nowMs)
    case 'heard-higher':
      if (comparePositions(event.position, now.grant) <= 0) return stay(seat)
      return { ...stay(seat), actions: [{ type: 'confirm' }] }
    case 'seen':
    case 'confirmed':
      if (!isGrant(event.stored, now.grant)) {
        if (event.type === 'confirmed') return lose(seat, 'superseded')
        return { ...stay(seat), actions: [{ type: 'confirm' }] }
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
  const policy = context.drainPolicy
  const alarm: OwnershipAction = { type: 'drain-overdue', policy }
  switch (policy) {
    case 'wait':
      return to(seat, { ...now, overdueAtMs: null }, [alarm])
    case 'evict':
      // The gate ends with the session; code that still runs ends with the process.
      return to(seat, { ...now, overdueAtMs: null }, [alarm, { type: 'end-session' }])
    case 'fence': {
      const step = sendHandOver(seat, now, nowMs - now.sinceMs, context, nowMs, 'forced')
      return { ...step, actions: [alarm, { type: 'lose', why: 'forced' }, ...step.actions] }
    }
    default:
      return policy satisfies never
  }
}
