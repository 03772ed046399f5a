/**
 * What etcd's own history says of a group, and the judgement over it: nothing here comes from what a
 * worker or a rebalancer says of itself.
 */
import assert from 'node:assert/strict'
import type { GroupKeys } from '../../../src/core/keys.ts'
import {
  decodePartitionRecord,
  type PartitionRecord,
  recordOwner,
} from '../../../src/core/partition-record.ts'
import { comparePositions } from '../../../src/core/token.ts'
import type { HistoryEvent } from '../../../src/dev/history.ts'
import type { Store } from '../../../src/ports/store.ts'

export type Grant = {
  readonly partition: number
  readonly incarnation: number
  readonly generation: number
  readonly member: string
  readonly session: string
  readonly how: 'election' | 'hand-over' | 'forced'
  readonly revision: number
  readonly atMs: number
}

/** Records and sessions after the events so far. */
export type GroupNow = {
  readonly records: ReadonlyMap<number, PartitionRecord>
  /** Session by member. */
  readonly sessions: ReadonlyMap<string, string>
}

export function groupNow(events: readonly HistoryEvent[]): GroupNow {
  const records = new Map<number, PartitionRecord>()
  const sessions = new Map<string, string>()
  for (const event of events) apply(event, records, sessions)
  return { records, sessions }
}

/** The member that owns the partition in a session that lives, or null. */
export function liveOwner({ records, sessions }: GroupNow, partition: number): string | null {
  const owner = recordOwner(records.get(partition) ?? null)
  return owner !== null && sessions.get(owner.member) === owner.session ? owner.member : null
}

/** Every grant, oldest first. */
export function grantsOf(events: readonly HistoryEvent[]): readonly Grant[] {
  const grants: Grant[] = []
  const before = new Map<number, PartitionRecord>()
  for (const event of events) {
    if (event.type !== 'record') continue
    const { partition, record, revision, atMs } = event
    const last = before.get(partition)
    before.set(partition, record)
    if (record.phase !== 'owned' && record.phase !== 'revoking') continue
    if (last !== undefined && comparePositions(record, last) === 0) continue
    const { incarnation, generation, owner, how } = record
    grants.push({ partition, incarnation, generation, ...owner, how, revision, atMs })
  }
  return grants
}

/**
 * Judges each write of a partition's record (S1, S2, S4): generations rise by exactly one at each grant
 * and stand still at everything else; a grant goes to a session that lives; an election follows a record
 * without an owner, or an owner whose session is gone at that revision; a hand-over is the living
 * owner's; a forced move happens only where it is allowed.
 */
export function assertGrantsSound(
  events: readonly HistoryEvent[],
  options: { readonly forced?: boolean } = {},
): void {
  const records = new Map<number, PartitionRecord>()
  const sessions = new Map<string, string>()
  const operations = new Set<string>()
  for (const event of events) {
    if (event.type === 'record') {
      const where = `partition ${event.partition} at revision ${event.revision}`
      assert.ok(!operations.has(event.record.operation), `${where}: an operation id seen before`)
      operations.add(event.record.operation)
      assertWriteSound(records.get(event.partition), event.record, sessions, where, options)
    }
    apply(event, records, sessions)
  }
}

function assertWriteSound(
  before: PartitionRecord | undefined,
  record: PartitionRecord,
  sessions: ReadonlyMap<string, string>,
  where: string,
  { forced = false }: { readonly forced?: boolean },
): void {
  const rise = before === undefined ? record.generation : record.generation - before.generation
  if (before !== undefined) {
    assert.equal(record.incarnation, before.incarnation, `${where}: another incarnation`)
  }
  if (rise === 0) {
    assert.notEqual(before, undefined, `${where}: generation 0`)
    const [was, is] = [recordOwner(before ?? null), recordOwner(record)]
    if (is !== null) assert.deepEqual(is, was, `${where}: another owner without a grant`)
    return
  }
  assert.equal(rise, 1, `${where}: generation ${before?.generation} → ${record.generation}`)
  assert.equal(record.phase, 'owned', `${where}: a grant in phase ${record.phase}`)
  if (record.phase !== 'owned') return
  const alive = (owner: { member: string; session: string } | null) =>
    owner !== null && sessions.get(owner.member) === owner.session
  assert.ok(alive(record.owner), `${where}: granted to a session that is gone`)
  const owner = recordOwner(before ?? null)
  switch (record.how) {
    case 'election':
      assert.ok(!alive(owner), `${where}: elected while ${owner?.member} lives`)
      return
    case 'hand-over':
      assert.ok(owner !== null, `${where}: handed over by nobody`)
      return
    case 'forced':
      assert.ok(forced, `${where}: a forced move`)
      return
    default:
      record.how satisfies never
  }
}

/** True once the events include what etcd holds now. */
export async function isCaughtUp(
  events: readonly HistoryEvent[],
  store: Store,
  keys: GroupKeys,
): Promise<boolean> {
  const standing = await readRecords(store, keys)
  const { records } = groupNow(events)
  return [...standing.records].every(
    ([partition, { operation }]) => records.get(partition)?.operation === operation,
  )
}

/** Every partition's record as etcd holds it, now or at a revision of the past. */
export async function readRecords(
  store: Store,
  keys: GroupKeys,
  atRevision?: number,
): Promise<{ readonly revision: number; readonly records: ReadonlyMap<number, PartitionRecord> }> {
  const prefix = `${keys.prefix}partitions/`
  const reply = await store.list(
    { prefix, limit: 10_000, ...(atRevision === undefined ? {} : { atRevision }) },
    { timeoutMs: 5000 },
  )
  assert.ok(reply.ok, reply.ok ? '' : reply.detail)
  const records = reply.value.entries.map(({ key, value }): [number, PartitionRecord] => {
    const partition = Number(key.slice(prefix.length))
    return [partition, decodePartitionRecord(value, partition)]
  })
  return { revision: reply.revision, records: new Map(records) }
}

function apply(
  event: HistoryEvent,
  records: Map<number, PartitionRecord>,
  sessions: Map<string, string>,
): void {
  switch (event.type) {
    case 'record':
      records.set(event.partition, event.record)
      return
    case 'session-began':
      sessions.set(event.member, event.session)
      return
    case 'session-gone':
      sessions.delete(event.member)
      return
    default:
      event satisfies never
  }
}
