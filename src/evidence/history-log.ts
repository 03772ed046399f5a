/**
 * The ownership history: every change that etcd made to a group's partition records and sessions, in
 * revision order. As a file, one JSON object per line:
 *
 *   {"type":"record","revision":N,"atMs":N,"partition":N,"record":{…}}     as it stands in etcd
 *   {"type":"session-began","revision":N,"atMs":N,"member":"w-1","session":"16 hex digits"}
 *   {"type":"session-gone","revision":N,"atMs":N,"member":"w-1"}
 *   {"type":"gap","detail":"…"}                                            something is missing here
 *
 *   atMs  when the change was heard of, on the clock of the accept log: never before it was committed
 *
 * Lines of another type are passed over. A line that cannot be read is a gap: nothing that rests on the
 * history being whole can be concluded then.
 */
import type { StateEvent } from '../core/group-state.ts'
import type { GroupKeys } from '../core/keys.ts'
import { keySubject } from '../core/keys.ts'
import { decodeMemberRecord } from '../core/member-record.ts'
import type { PartitionRecord } from '../core/partition-record.ts'
import { decodePartitionRecord } from '../core/partition-record.ts'
import { isTenureError } from '../core/tenure-error.ts'
import { type EvidenceToken, tokenId } from './accept-log.ts'
import { isObject, jsonLines } from './json-lines.ts'

export type HistoryEvent = { readonly atMs: number; readonly revision: number } & (
  | {
      readonly type: 'record'
      readonly partition: number
      readonly record: PartitionRecord
    }
  | { readonly type: 'session-began'; readonly member: string; readonly session: string }
  | { readonly type: 'session-gone'; readonly member: string }
)

export type HistoryLog = {
  readonly events: readonly HistoryEvent[]
  /** What is known to be missing, in words; empty: nothing is. */
  readonly missing: readonly string[]
  /** False: `atMs` is not on the accept log's clock, and only names when something was written. */
  readonly timed: boolean
}

/** The change as an event of the history; null: it is about neither partitions nor sessions. */
export function historyEventOf(
  keys: GroupKeys,
  change: StateEvent,
  atMs: number,
): HistoryEvent | null {
  const key = change.type === 'put' ? change.entry.key : change.key
  const revision = change.type === 'put' ? change.entry.modRevision : change.modRevision
  const subject = keySubject(keys, key)
  if (subject.type === 'partition' && change.type === 'put') {
    const { partition } = subject
    const record = decodePartitionRecord(change.entry.value, partition)
    return { type: 'record', atMs, revision, partition, record }
  }
  if (subject.type !== 'member') return null
  const { member } = subject
  if (change.type === 'delete') return { type: 'session-gone', atMs, revision, member }
  const session = change.entry.session ?? decodeMemberRecord(change.entry.value).session
  return { type: 'session-began', atMs, revision, member, session }
}

export function parseHistory(text: string, name: string): HistoryLog {
  const missing: string[] = []
  const events: HistoryEvent[] = []
  for (const { value, line } of jsonLines(text)) {
    const event = eventOf(value)
    if (event === 'other') continue
    if (event !== null) events.push(event)
    else if (isObject(value) && value['type'] === 'gap') missing.push(String(value['detail'] ?? ''))
    else missing.push(`${name}, line ${line} cannot be read`)
  }
  return { events, missing, timed: true }
}

function eventOf(value: unknown): HistoryEvent | 'other' | null {
  if (!isObject(value)) return null
  const { type, atMs, revision, member, session, partition, record } = value
  const isPlaced = typeof atMs === 'number' && Number.isSafeInteger(revision)
  const place = { atMs: atMs as number, revision: revision as number }
  switch (type) {
    case 'record': {
      if (!isPlaced || !Number.isSafeInteger(partition) || !isObject(record)) return null
      const decoded = recordOf(record, partition as number)
      if (decoded === null) return null
      return { ...place, type, partition: partition as number, record: decoded }
    }
    case 'session-began':
      if (!isPlaced || typeof member !== 'string' || typeof session !== 'string') return null
      return { ...place, type, member, session }
    case 'session-gone':
      return isPlaced && typeof member === 'string' ? { ...place, type, member } : null
    case 'gap':
      return null
    default:
      return typeof type === 'string' ? 'other' : null
  }
}

/** A record as etcd holds it, or as this program prints it: without `v`. */
function recordOf(value: Record<string, unknown>, partition: number): PartitionRecord | null {
  const { unknown, ...fields } = value
  const known = isObject(unknown) ? { ...fields, ...unknown } : fields
  try {
    return decodePartitionRecord(JSON.stringify({ v: 1, ...known }), partition)
  } catch (error) {
    if (isTenureError(error)) return null
    throw error
  }
}

export type OwnedRecord = PartitionRecord & { readonly phase: 'owned' }
export type GrantEvent = {
  readonly atMs: number
  readonly revision: number
  readonly partition: number
  readonly record: OwnedRecord
}

/** The grants, oldest first: `owned` is only ever written by one. */
export function grantsOf(history: readonly HistoryEvent[]): readonly GrantEvent[] {
  const seen = new Set<string>()
  return history.filter((event): event is HistoryEvent & GrantEvent => {
    if (event.type !== 'record' || event.record.phase !== 'owned') return false
    const { operation } = event.record
    if (seen.has(operation)) return false
    seen.add(operation)
    return true
  })
}

export function grantToken({ partition, record }: GrantEvent): EvidenceToken {
  const { incarnation, generation, owner } = record
  return { partition, incarnation, generation, session: owner.session }
}

/** The token of the grant before this one; null: it is the first. */
export function previousToken({ partition, record }: GrantEvent): EvidenceToken | null {
  if (record.previous === null) return null
  const { incarnation, generation, session } = record.previous
  return { partition, incarnation, generation, session }
}

export function grantId(grant: GrantEvent): string {
  return tokenId(grantToken(grant))
}
