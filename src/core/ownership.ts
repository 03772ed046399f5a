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
 *     ├◀──────────────── done (or moved on) ────────────── handing-over ──to myself──▶ acquiring
 *     └◀──────────────── marked (or moved on) ──────────── halting ◀── fence-ahead, or etcd restored
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
 * I6  only the answer to the latest confirming read counts, and only while the grant it was asked about
 *     is held: an older answer would depose a newer grant, or reopen a gate that newer news closed.
 * I7  each `begin` is followed by exactly one `lose` or `release` before the next.
 *
 * Failure cases: a reply is lost (confirm; see `settle`); the grantee died (commit vacant instead); the
 * move was retargeted while draining or while the hand-over was under way (the refusal shows the new
 * record); another grant appears (suspect, confirm, then lost or reopened); etcd was restored and names
 * my session at a position I remember but do not hold (confirm, then halt and alarm); the incarnation
 * rose (what the record still names of an older one is drained if held, and granted anew by its owner,
 * halted records included, since no election may touch them while that owner's session lives).
 */
import type { StoredRecord } from './commit.ts'
import { elect } from './commit.ts'
import { stepDraining } from './ownership-draining.ts'
import { stepHalting } from './ownership-halting.ts'
import { stepHandingOver } from './ownership-hand-over.ts'
import type {
  As,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import { ask, isCommit, isGrant, isMine, stay, to } from './ownership-state.ts'
import {
  drain,
  giveUpUnused,
  lose,
  notice,
  sendHalt,
  superseded,
  suspect,
  trusted,
} from './ownership-transitions.ts'
import { comparePositions } from './token.ts'

export function stepOwnership(
  seat: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  if (event.type !== 'confirmed') return stepStatus(seat, event, context, nowMs)
  if (event.id !== seat.asked) return stay(seat)
  return stepStatus({ ...seat, asked: null }, event, context, nowMs)
}

function stepStatus(
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
    case 'halting':
      return stepHalting(seat, now, event, context, nowMs)
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
      const record = event.stored?.record
      // Granting requires the incarnation to stand where the record is, and beyond where it halted.
      const from = record?.phase === 'halted' ? record.incarnation + 1 : (record?.incarnation ?? 0)
      if (incarnation < from) return stay(seat)
      const commit = elect(partition, event.stored, me, incarnation, stamp)
      return to(seat, { status: 'campaigning', commit }, [
        { type: 'commit', commit, purpose: 'campaign' },
      ])
    }
    case 'seen':
    case 'confirmed':
      return notice(seat, event.stored, event.type === 'confirmed', context, nowMs)
    default:
      return stay(seat)
  }
}

function stepCampaigning(
  seat: Seat,
  now: As<'campaigning'>,
  event: OwnershipEvent,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const { commit } = now
  const absent = to(seat, { status: 'absent' }, []).seat
  const ours: StoredRecord = { record: commit.next, raw: commit.value }
  const won = (stored: StoredRecord = ours): OwnershipStep => {
    const step = notice(absent, stored, true, context, nowMs)
    return { ...step, actions: [{ type: 'campaign-ended', outcome: 'won' }, ...step.actions] }
  }
  const refused = (stands: StoredRecord | null): OwnershipStep => {
    const step = notice(absent, stands, false, context, nowMs)
    return { ...step, actions: [{ type: 'campaign-ended', outcome: 'refused' }, ...step.actions] }
  }
  switch (event.type) {
    case 'session-ended':
      // Over all the same, however it ends in etcd: the next session is to campaign again.
      return to(seat, { status: 'absent' }, [{ type: 'campaign-ended', outcome: 'unknown' }])
    case 'committed':
      return event.operation === commit.next.operation ? won() : stay(seat)
    case 'seen': {
      const { stored } = event
      if (isCommit(stored, commit)) return won()
      if (stored === null || context.me === null || !isMine(stored.record, context.me)) {
        return stay(seat)
      }
      // Won, and already asked back: the map may show the two as one change.
      if (comparePositions(stored.record, seat.highest) > 0) return won(stored)
      // One that I remember and do not hold; the campaign's end alone would not tell of it.
      return ask(seat, context)
    }
    case 'unsettled':
      return event.operation === commit.next.operation ? ask(seat, context) : stay(seat)
    case 'refused-all':
      // Not executed. Should an earlier sending land after all, the map will name me, and I adopt it.
      if (event.operation !== commit.next.operation) return stay(seat)
      return seat.asked === null
        ? refused(null)
        : ask(refused(null).seat, context, refused(null).actions)
    case 'refused':
      if (event.operation !== commit.next.operation) return stay(seat)
      return isCommit(event.stands, commit) ? won() : refused(event.stands)
    case 'confirmed':
      if (isCommit(event.stored, commit)) return won()
      if ((event.stored?.raw ?? null) !== commit.expected) return refused(event.stored)
      // The old value stands: the first request may still land, so only the same one goes again.
      return to(seat, now, [{ type: 'commit', commit, purpose: 'campaign' }])
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
      return now.status === 'acquiring' ? acquired(seat, now) : stay(seat)
    case 'acquire-failed':
      return giveUpUnused(seat, now, { to: event.to, reason: 'acquire-failed' }, context, nowMs)
    case 'wake':
      if (now.status !== 'acquiring' || nowMs < now.overdueAtMs) return stay(seat)
      return giveUpUnused(seat, now, { to: null, reason: 'acquire-failed' }, context, nowMs)
    case 'give-up':
      return drain(seat, now, event.giveUp, context, nowMs)
    case 'heard-higher':
      if (comparePositions(event.position, now.grant) <= 0) return stay(seat)
      return suspect(seat, now, 'higher-generation', context)
    case 'fence-ahead': {
      const { me } = context
      if (me === null) return stay(seat)
      if (now.grant.incarnation < context.incarnation)
        return held(seat, now, now.stored, context, nowMs)
      return sendHalt(seat, now.stored, me, event.highest, context, [
        { type: 'lose', why: 'superseded' },
      ])
    }
    case 'seen':
      if (!isGrant(event.stored, now.grant)) return suspect(seat, now, 'changed-record', context)
      return held(seat, now, event.stored, context, nowMs)
    case 'confirmed':
      if (!isGrant(event.stored, now.grant)) return superseded(seat, event.stored, context, nowMs)
      return held(seat, trusted(now), event.stored, context, nowMs, trusted(now) !== now)
    default:
      return stay(seat)
  }
}

function acquired(seat: Seat, { grant, stored }: As<'acquiring'>): OwnershipStep {
  // A doubt that arose while acquiring must be settled before the gate opens.
  if (seat.asked !== null)
    return to(seat, { status: 'serving', grant, stored, trust: 'settling' }, [])
  return to(seat, { status: 'serving', grant, stored, trust: 'sure' }, [{ type: 'open-gate' }])
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
  if (record.incarnation < context.incarnation) {
    return drain(
      seat,
      current,
      { to: now.grant.owner.member, reason: 'incarnation' },
      context,
      nowMs,
    )
  }
  return to(seat, current, reopened ? [{ type: 'open-gate' }] : [])
}
