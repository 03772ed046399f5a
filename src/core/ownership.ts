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
import type { Commit, Stamp, StoredRecord } from './commit.ts'
import { elect, force, halt, handOver, vacate } from './commit.ts'
import type { DrainPolicy } from './group-config.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { GrantKind, MoveReason, Owner, PartitionRecord } from './partition-record.ts'
import { recordOwner } from './partition-record.ts'
import type { Position } from './token.ts'
import { comparePositions } from './token.ts'

/** A grant that this member holds. */
export type Grant = Position & { readonly owner: Owner; readonly how: GrantKind }

/** Where a partition goes, and why. */
export type GiveUp = { readonly to: MemberName | null; readonly reason: MoveReason }

type Held = { readonly grant: Grant; readonly stored: StoredRecord }
type Trust = 'sure' | 'settling'

export type Ownership =
  | { readonly status: 'absent' }
  | { readonly status: 'campaigning'; readonly commit: Commit }
  | (Held & { readonly status: 'acquiring'; readonly overdueAtMs: number })
  | (Held & { readonly status: 'serving'; readonly trust: Trust })
  | (Held & {
      readonly status: 'draining'
      readonly giveUp: GiveUp
      readonly sinceMs: number
      /** Null once the deadline was dealt with. */
      readonly overdueAtMs: number | null
    })
  | {
      readonly status: 'handing-over'
      readonly grant: Grant
      readonly giveUp: GiveUp
      readonly commit: Commit
      readonly drainMs: number
      readonly sentAtMs: number
    }

/** What a member keeps per partition. */
export type Seat = { readonly highest: Position; readonly now: Ownership }

export type OwnershipEvent =
  /** The map shows this record; a hint, newer than any seen before. */
  | { readonly type: 'seen'; readonly stored: StoredRecord | null }
  /** A writing transaction read this record. */
  | { readonly type: 'confirmed'; readonly stored: StoredRecord | null }
  | { readonly type: 'campaign'; readonly stored: StoredRecord | null }
  | { readonly type: 'committed'; readonly operation: string }
  /** Refused by a compare; `stands` is the record that the transaction saw. */
  | { readonly type: 'refused'; readonly operation: string; readonly stands: StoredRecord | null }
  /** Unknown, not executed, or refused for a reason that all share: read and see. */
  | { readonly type: 'unsettled'; readonly operation: string }
  | { readonly type: 'heard-higher'; readonly position: Position }
  | { readonly type: 'acquired' }
  | { readonly type: 'acquire-failed'; readonly to: MemberName | null }
  | { readonly type: 'give-up'; readonly giveUp: GiveUp }
  | { readonly type: 'drained' }
  | { readonly type: 'session-ended' }
  /** A resource has seen a position not below mine although etcd calls me owner. */
  | { readonly type: 'fence-ahead'; readonly highest: Position }
  | { readonly type: 'wake' }

export type LostWhy = 'session-ended' | 'superseded' | 'forced' | 'halted' | 'acquire-overdue'

export type OwnershipAction =
  | { readonly type: 'commit'; readonly commit: Commit; readonly purpose: CommitPurpose }
  /** Read the record in a writing transaction and come back with `confirmed`. */
  | { readonly type: 'confirm' }
  | { readonly type: 'begin'; readonly grant: Grant }
  | { readonly type: 'open-gate' }
  | { readonly type: 'suspend-gate'; readonly why: 'higher-generation' | 'changed-record' }
  | { readonly type: 'drain'; readonly giveUp: GiveUp }
  | { readonly type: 'lose'; readonly why: LostWhy }
  | {
      readonly type: 'release'
      readonly to: MemberName | null
      readonly drainMs: number
      readonly handOffMs: number
    }
  | { readonly type: 'drain-overdue'; readonly policy: DrainPolicy }
  | { readonly type: 'end-session' }
  | { readonly type: 'campaign-ended'; readonly outcome: 'won' | 'refused' }
  | { readonly type: 'fence-ahead'; readonly highest: Position }

export type CommitPurpose = 'campaign' | 'hand-over' | 'halt'

export type OwnershipContext = {
  readonly partition: PartitionId
  /** My name and live session; null while I have none. */
  readonly me: Owner | null
  readonly incarnation: number
  readonly fenced: boolean
  readonly drainDeadlineMs: number
  readonly drainPolicy: DrainPolicy
  readonly acquireDeadlineMs: number
  /** The member's live session, if it may receive partitions. */
  granteeOf(member: MemberName): Owner | null
  readonly stamp: Stamp
}

export type OwnershipStep = {
  readonly seat: Seat
  readonly actions: readonly OwnershipAction[]
  readonly wakeAtMs: number | null
}

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

type As<Status extends Ownership['status']> = Ownership & { readonly status: Status }

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
      if (stored === null || !isMine(stored.record, me) || stored.record.phase === 'halted') {
        return stay(seat)
      }
      if (comparePositions(stored.record, seat.highest) > 0)
        return adopt(seat, stored, context, nowMs)
      // Mine by the record, yet not above what I remember: stale, or etcd was restored.
      if (event.type === 'seen') return { ...stay(seat), actions: [{ type: 'confirm' }] }
      return haltHere(seat, stored, me, seat.highest, context)
    }
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

function stepHandingOver(
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
        ? handedOver(seat, now, context, nowMs)
        : stay(seat)
    case 'unsettled':
      return event.operation === commit.next.operation
        ? { ...stay(seat), actions: [{ type: 'confirm' }] }
        : stay(seat)
    case 'seen':
      if (isCommit(event.stored, commit)) return handedOver(seat, now, context, nowMs)
      return stay(seat)
    case 'refused':
      if (event.operation !== commit.next.operation) return stay(seat)
      return settleHandOver(seat, now, event.stands, true, context, nowMs)
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
  if (isCommit(stands, commit)) return handedOver(seat, now, context, nowMs)
  // Another grant took its place (a forced move): what was drained is released all the same.
  if (!isGrant(stands, grant)) return handedOver(seat, now, context, nowMs)
  if (stands.record.phase === 'halted')
    return to(seat, { status: 'absent' }, [{ type: 'lose', why: 'halted' }])
  const asked = stands.record.phase === 'revoking' ? stands.record.move : now.giveUp
  const giveUp: GiveUp = { to: asked.to, reason: asked.reason }
  const unchanged = stands.raw === commit.expected
  if (unchanged && !refused) {
    return { ...stay(seat), actions: [{ type: 'commit', commit, purpose: 'hand-over' }] }
  }
  // Same record, so a requirement failed: the grantee died, or may not receive. Let elections decide.
  const target = unchanged ? null : granteeFor(giveUp.to, context)
  const next = handOverCommit(stands, target, context)
  return to(seat, { ...now, giveUp, commit: next }, [
    { type: 'commit', commit: next, purpose: 'hand-over' },
  ])
}

/** Done, or moved on without me. A grant to myself begins anew. */
function handedOver(
  seat: Seat,
  now: As<'handing-over'>,
  context: OwnershipContext,
  nowMs: number,
): OwnershipStep {
  const owner = recordOwner(now.commit.next)
  const release: OwnershipAction = {
    type: 'release',
    to: owner?.member ?? null,
    drainMs: now.drainMs,
    handOffMs: nowMs - now.sentAtMs,
  }
  const absent: Seat = { ...seat, now: { status: 'absent' } }
  const stored = { record: now.commit.next, raw: now.commit.value }
  if (context.me === null || !isMine(stored.record, context.me)) {
    return to(absent, absent.now, [release])
  }
  const step = stepAbsent(absent, { type: 'seen', stored }, context, nowMs)
  return { ...step, actions: [release, ...step.actions] }
}

/** Takes a grant that names me; one that is to be given up again is skipped, not acquired. */
function adopt(
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

function drain(
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
function giveUpUnused(
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

function sendHandOver(
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
  return to(seat, { status: 'handing-over', grant, giveUp, commit, drainMs, sentAtMs: nowMs }, [
    { type: 'commit', commit, purpose: 'hand-over' },
  ])
}

function handOverCommit(
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

function granteeFor(member: MemberName | null, context: OwnershipContext): Owner | null {
  return member === null ? null : context.granteeOf(member)
}

function haltHere(
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

function suspect(
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

function trusted(now: As<'acquiring' | 'serving'>): As<'acquiring' | 'serving'> {
  return now.status === 'serving' && now.trust === 'settling' ? { ...now, trust: 'sure' } : now
}

function lose(seat: Seat, why: LostWhy): OwnershipStep {
  return to(seat, { status: 'absent' }, [{ type: 'lose', why }])
}

function isMine(record: PartitionRecord, me: Owner): boolean {
  const owner = recordOwner(record)
  return owner !== null && owner.session === me.session && owner.member === me.member
}

function isGrant(stored: StoredRecord | null, grant: Grant): stored is StoredRecord {
  return (
    stored !== null &&
    comparePositions(stored.record, grant) === 0 &&
    recordOwner(stored.record)?.session === grant.owner.session
  )
}

function isCommit(stored: StoredRecord | null, commit: Commit): boolean {
  return stored?.record.operation === commit.next.operation
}

function to(seat: Seat, now: Ownership, actions: readonly OwnershipAction[]): OwnershipStep {
  return { seat: { ...seat, now }, actions, wakeAtMs: wakeOf(now) }
}

function stay(seat: Seat): OwnershipStep {
  return { seat, actions: [], wakeAtMs: wakeOf(seat.now) }
}

function wakeOf(now: Ownership): number | null {
  return now.status === 'acquiring' || now.status === 'draining' ? now.overdueAtMs : null
}
