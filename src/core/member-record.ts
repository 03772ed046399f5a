/**
 * A member's record: put once under its session's lease, rewritten once per change of state, never per
 * keepalive. That it stands under the lease is what "alive" means.
 */
import type { MemberName, SessionId } from './ids.ts'
import { isObject, readVersion } from './record-format.ts'
import { createTenureError } from './tenure-error.ts'

/** `leaving`: drains everything and takes nothing more. */
export type MemberState = 'active' | 'leaving'

export type MemberRecord = {
  readonly member: MemberName
  readonly session: SessionId
  /** Where callers reach this member (`host:port` or URL); empty when it serves nobody. */
  readonly address: string
  /** Share of the partitions relative to others; integer, 0: takes nothing. */
  readonly weight: number
  /** Most partitions that it takes; null: no limit. */
  readonly capacity: number | null
  readonly zone: string
  readonly labels: Readonly<Record<string, string>>
  readonly state: MemberState
  /** Record versions that it understands; the group acts on the lowest common one. */
  readonly versions: readonly number[]
}

export function encodeMemberRecord(record: MemberRecord): string {
  return JSON.stringify({ v: 1, ...record })
}

/** @throws TenureError `record-malformed` or `record-version-unknown`. */
export function decodeMemberRecord(text: string): MemberRecord {
  const { v: _, ...value } = readVersion(text, 'member record')
  const sound =
    typeof value['member'] === 'string' &&
    typeof value['session'] === 'string' &&
    Number.isSafeInteger(value['weight']) &&
    (value['capacity'] === null || Number.isSafeInteger(value['capacity'])) &&
    isObject(value['labels'])
  if (!sound) throw createTenureError('record-malformed', `member record: ${text}`)
  return value as unknown as MemberRecord
}
