/**
 * The arrows of a partition (DESIGN: "The steps of a partition"), each one compare-and-set. A commit
 * says which record value it replaces, by what, and what else must hold; `commit-batch.ts` turns many
 * of them into one etcd transaction.
 *
 *   elect      any member       requires: owner's session gone, mine alive
 *   revoke     rebalancer       requires: its election
 *   retarget   rebalancer       requires: its election (only `to` is rewritten, never the owner)
 *   handOver   the owner, after its drain   requires: the grantee's session alive
 *   vacate     the owner, after its drain
 *   force      rebalancer, or the owner itself, of a fenced group   requires: election or own session;
 *                                                                   the grantee's session alive
 *   halt       the owner
 *
 * Every grant (elect, handOver, force) also requires the incarnation that it writes, the grantee not
 * cordoned, and neither the partition nor the group disabled. Compares are on the record's whole value:
 * revisions repeat after a restore, operation ids do not.
 */
import type { MemberName, OperationId, PartitionId, SessionId } from './ids.ts'
import type { Owner, PartitionRecord, PendingMove, PreviousOwner } from './partition-record.ts'
import { encodePartitionRecord, recordOwner } from './partition-record.ts'
import type { Position } from './token.ts'

export type Requirement =
  | {
      readonly type: 'session-alive'
      readonly member: MemberName
      readonly session: SessionId
    }
  | {
      readonly type: 'session-gone'
      readonly member: MemberName
      readonly session: SessionId
    }
  | { readonly type: 'rebalancer'; readonly session: SessionId }
  | { readonly type: 'incarnation'; readonly incarnation: number }
  | { readonly type: 'not-cordoned'; readonly member: MemberName }
  | { readonly type: 'group-enabled' }
  | { readonly type: 'partition-enabled' }

export type Commit = {
  readonly partition: PartitionId
  /** The record's raw value that this replaces; null: the key is absent. */
  readonly expected: string | null
  readonly next: PartitionRecord
  /** `encodePartitionRecord(next)`, made once. */
  readonly value: string
  readonly requires: readonly Requirement[]
}

/** A record together with the exact text that stands in etcd. */
export type StoredRecord = {
  readonly record: PartitionRecord
  readonly raw: string
}

const ENABLED = {
  group: { type: 'group-enabled' },
  partition: { type: 'partition-enabled' },
} as const satisfies Record<string, Requirement>

/** What every commit is stamped with. */
export type Stamp = { readonly operation: OperationId; readonly atMs: number }

export function elect(
  partition: PartitionId,
  stored: StoredRecord | null,
  candidate: Owner,
  incarnation: number,
  stamp: Stamp,
): Commit {
  const last = recordOwner(stored?.record ?? null)
  const gone: Requirement[] = last === null ? [] : [{ type: 'session-gone', ...last }]
  return grant(partition, stored, candidate, 'election', incarnation, stamp, gone)
}

/** The owner's grant to the next one, after its drain; to itself when a move was cancelled. */
export function handOver(
  partition: PartitionId,
  stored: StoredRecord,
  grantee: Owner,
  incarnation: number,
  stamp: Stamp,
): Commit {
  return grant(partition, stored, grantee, 'hand-over', incarnation, stamp, [])
}

/** Only in a fenced group (S4's exception): the old owner may still run, the fence refuses it. */
export function force(
  partition: PartitionId,
  stored: StoredRecord,
  grantee: Owner,
  incarnation: number,
  by: Requirement,
  stamp: Stamp,
): Commit {
  return grant(partition, stored, grantee, 'forced', incarnation, stamp, [by])
}

export function vacate(
  partition: PartitionId,
  stored: StoredRecord,
  stamp: Stamp,
  requires: readonly Requirement[] = [],
): Commit {
  const { record } = stored
  return commit(partition, stored.raw, requires, {
    phase: 'vacant',
    incarnation: record.incarnation,
    generation: record.generation,
    previous: previousOf(record),
    operation: stamp.operation,
    atMs: stamp.atMs,
    unknown: record.unknown,
  })
}

export function revoke(
  partition: PartitionId,
  stored: StoredRecord & { readonly record: { readonly phase: 'owned' } },
  move: PendingMove,
  rebalancer: SessionId,
  stamp: Stamp,
): Commit {
  const { incarnation, generation, owner, how, previous, unknown } = stored.record
  const next: PartitionRecord = {
    phase: 'revoking',
    incarnation,
    generation,
    owner,
    how,
    previous,
    operation: stamp.operation,
    atMs: stamp.atMs,
    unknown,
    move,
  }
  return commit(partition, stored.raw, [{ type: 'rebalancer', session: rebalancer }], next)
}

export function retarget(
  partition: PartitionId,
  stored: StoredRecord & { readonly record: { readonly phase: 'revoking' } },
  to: MemberName | null,
  rebalancer: SessionId,
  stamp: Stamp,
): Commit {
  const { record } = stored
  const move = { ...record.move, to, rewrites: record.move.rewrites + 1 }
  const next: PartitionRecord = { ...record, ...stamp, move }
  return commit(partition, stored.raw, [{ type: 'rebalancer', session: rebalancer }], next)
}

/**
 * Ends all work on the partition, everywhere, until the incarnation rises. No grant.
 * @param highest what made the owner halt; kept in the record where its incarnation is a later one, since
 *   whoever raises the incarnation must exceed it
 */
export function halt(
  partition: PartitionId,
  stored: StoredRecord,
  owner: Owner,
  reason: string,
  stamp: Stamp,
  highest: Position | null = null,
): Commit {
  const { record } = stored
  return commit(partition, stored.raw, [{ type: 'session-alive', ...owner }], {
    phase: 'halted',
    owner,
    reason,
    ...(highest !== null && highest.incarnation > record.incarnation ? { highest } : {}),
    incarnation: record.incarnation,
    generation: record.generation,
    previous: record.previous,
    unknown: record.unknown,
    ...stamp,
  })
}

function grant(
  partition: PartitionId,
  stored: StoredRecord | null,
  owner: Owner,
  how: 'election' | 'hand-over' | 'forced',
  incarnation: number,
  stamp: Stamp,
  requires: readonly Requirement[],
): Commit {
  const record = stored?.record ?? null
  const next: PartitionRecord = {
    phase: 'owned',
    incarnation,
    generation: (record?.generation ?? 0) + 1,
    owner: { member: owner.member, session: owner.session },
    how,
    previous: record === null ? null : previousOf(record),
    operation: stamp.operation,
    atMs: stamp.atMs,
    unknown: record?.unknown ?? null,
  }
  return commit(
    partition,
    stored?.raw ?? null,
    [
      ...requires,
      { type: 'session-alive', member: owner.member, session: owner.session },
      { type: 'incarnation', incarnation },
      { type: 'not-cordoned', member: owner.member },
      ENABLED.group,
      ENABLED.partition,
    ],
    next,
  )
}

function commit(
  partition: PartitionId,
  expected: string | null,
  requires: readonly Requirement[],
  next: PartitionRecord,
): Commit {
  return {
    partition,
    expected,
    next,
    value: encodePartitionRecord(next),
    requires,
  }
}

/** Once vacant, the last owner stays the previous one. */
function previousOf(record: PartitionRecord): PreviousOwner | null {
  if (record.phase === 'vacant') return record.previous
  const { member, session } = record.owner
  return {
    member,
    session,
    incarnation: record.incarnation,
    generation: record.generation,
  }
}
