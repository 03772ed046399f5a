/**
 * What every process wants to know of every partition, read off a record's text without parsing it: of a
 * hundred members, ninety-nine never look at the rest. Only texts as this build writes them are read so;
 * any other (another phase, another writer's order, unknown fields) is decoded in full, so the outline is
 * always that of the decoded record, or the same error.
 *
 * Nearly all records are *plain* grants (`plain-grant.ts`), of which the outline is everything.
 */
import type { MemberName, PartitionId, SessionId } from './ids.ts'
import type { Owner, PartitionRecord } from './partition-record.ts'
import { decodePartitionRecord, recordOwner } from './partition-record.ts'
import { OWNER, type PlainGrant, readPlainGrant, TEXT, WHOLE } from './plain-grant.ts'
import { readPlainGrantBytes } from './plain-grant-bytes.ts'
import type { KeyValue } from './transaction.ts'

export type RecordOutline = {
  readonly phase: PartitionRecord['phase']
  readonly incarnation: number
  readonly generation: number
  readonly owner: Owner | null
  readonly previous: Owner | null
  /** Null: the record holds more than the outline and this tell. */
  readonly plain: PlainGrant | null
}

const PREVIOUS = `(?:null|${OWNER},"incarnation":${WHOLE},"generation":${WHOLE}\\})`
const GRANT =
  `"incarnation":(${WHOLE}),"generation":(${WHOLE}),"owner":${OWNER}\\},"how":"[a-z-]+",` +
  `"previous":${PREVIOUS},"operation":"${TEXT}","atMs":${WHOLE}`
const MOVE =
  `"move":\\{"id":"${TEXT}","to":(?:null|"${TEXT}"),"reason":"[a-z-]+","by":"${TEXT}",` +
  `"rewrites":(?:0|[1-9]\\d{0,8}),"atMs":${WHOLE}\\}`
const OWNED = new RegExp(`^\\{"v":1,"phase":"owned",${GRANT}\\}$`)
const REVOKING = new RegExp(`^\\{"v":1,"phase":"revoking",${GRANT},${MOVE}\\}$`)

/** @throws TenureError as `decodePartitionRecord` does */
export function outlineEntry(
  entry: Pick<KeyValue, 'value' | 'bytes'>,
  partition: PartitionId,
): RecordOutline {
  const { bytes } = entry
  const plain = bytes === undefined ? null : readPlainGrantBytes(bytes)
  return plain === null ? outlineRecord(entry.value, partition) : outlineOfPlain(plain)
}

/** @throws TenureError as `decodePartitionRecord` does */
export function outlineRecord(text: string, partition: PartitionId): RecordOutline {
  const plain = readPlainGrant(text)
  if (plain !== null) return outlineOfPlain(plain)
  const owned = OWNED.exec(text)
  const read = owned ?? REVOKING.exec(text)
  if (read === null) return outlineOf(decodePartitionRecord(text, partition))
  const [, incarnation, generation, member, session, before, sessionBefore] = read
  return {
    phase: owned === null ? 'revoking' : 'owned',
    incarnation: Number(incarnation),
    generation: Number(generation),
    owner: { member: member as MemberName, session: session as SessionId },
    previous:
      before === undefined
        ? null
        : { member: before as MemberName, session: sessionBefore as SessionId },
    plain: null,
  }
}

function outlineOfPlain(plain: PlainGrant): RecordOutline {
  const { incarnation, generation, owner, previous } = plain
  return { phase: 'owned', incarnation, generation, owner, previous, plain }
}

function outlineOf(record: PartitionRecord): RecordOutline {
  const { phase, incarnation, generation } = record
  const owner = recordOwner(record)
  const previous = record.previous ?? null
  return {
    phase,
    incarnation,
    generation,
    owner: owner && { member: owner.member, session: owner.session },
    previous: previous && { member: previous.member, session: previous.session },
    plain: null,
  }
}
