/**
 * S1 and S2 over the history of grants, and whether that history is whole.
 *
 * A grant names the one before it, and generations rise by one. So an entry that is missing shows: the
 * grant then names another one than the last that is known. That is a gap and no violation: what is
 * missing may be all that one needs to know. A grant that names the last known one and yet is not one
 * above it breaks S1.
 */
import type { PartitionRecord } from '../core/partition-record.ts'
import type { Position } from '../core/token.ts'
import { comparePositions } from '../core/token.ts'
import { describePosition, type Gap, type Violation } from './findings.ts'
import type { HistoryEvent, HistoryLog, OwnedRecord } from './history-log.ts'

export type GrantsFound = {
  readonly violations: readonly Violation[]
  readonly gaps: readonly Gap[]
}

type Chain = {
  last: PartitionRecord
  highest: Position
  /** Sessions by position. */
  readonly sessions: Map<string, string>
}

type RecordEvent = HistoryEvent & { readonly type: 'record' }

export function verifyGrants({ events, missing }: HistoryLog): GrantsFound {
  const violations: Violation[] = []
  const gaps: Gap[] = missing.map((detail) => ({ partition: null, detail }))
  const chains = new Map<number, Chain>()
  let revision = 0
  let wentBack = false
  for (const event of events) {
    wentBack ||= event.revision < revision
    revision = event.revision
    if (event.type !== 'record') continue
    const { partition, record } = event
    const chain = chains.get(partition)
    if (chain?.last.operation === record.operation) continue
    if (chain === undefined) {
      gaps.push(...gapsOfFirst(event))
      const sessions = new Map<string, string>()
      if (record.phase !== 'vacant') sessions.set(describePosition(record), record.owner.session)
      chains.set(partition, { last: record, highest: record, sessions })
      continue
    }
    const found =
      record.phase === 'owned' ? grantFound(chain, event, record) : changeFound(chain, event)
    violations.push(...found.violations)
    gaps.push(...found.gaps)
    chain.last = record
    if (comparePositions(record, chain.highest) > 0) chain.highest = record
    if (record.phase === 'owned') {
      const position = describePosition(record)
      if (!chain.sessions.has(position)) chain.sessions.set(position, record.owner.session)
    }
  }
  if (wentBack) {
    const detail = `revisions go back: etcd was restored meanwhile, or histories were mixed`
    gaps.push({ partition: null, detail })
  }
  return { violations, gaps }
}

function gapsOfFirst({ partition, record }: RecordEvent): readonly Gap[] {
  const isFirst = record.phase === 'owned' && record.previous === null && record.generation === 1
  if (isFirst) return []
  const detail = `the history begins with ${describePosition(record)} (${record.phase}), what came before is not in it`
  return [{ partition, detail }]
}

function grantFound(chain: Chain, event: RecordEvent, record: OwnedRecord): GrantsFound {
  const { partition, atMs } = event
  const { last, highest } = chain
  const violations: Violation[] = []
  const position = describePosition(record)
  const before = chain.sessions.get(position)
  const { session } = record.owner
  if (before !== undefined && before !== session) {
    violations.push({
      ...{ promise: 'S2', kind: 'two-sessions-one-token', partition, atMs },
      generations: [position],
      detail: `granted to the sessions ${before} and ${session}`,
    })
  }
  if (comparePositions(record, highest) <= 0) {
    violations.push({
      ...{ promise: 'S1', kind: 'generation-repeated', partition, atMs },
      generations: [describePosition(highest), position],
      detail: `granted to ${record.owner.member} after ${describePosition(highest)} had been`,
    })
    return { violations, gaps: [] }
  }
  // The group was made anew, as after a wipe.
  const isNewGroup = record.previous === null && record.generation === 1
  if (isNewGroup && record.incarnation > last.incarnation) return { violations, gaps: [] }
  if (!namesAsPrevious(record, last)) {
    const named = record.previous === null ? 'nobody' : describePosition(record.previous)
    const detail = `${position} names ${named} before it, the history has ${describePosition(last)}: entries are missing`
    return { violations, gaps: [{ partition, detail }] }
  }
  if (record.generation !== last.generation + 1) {
    violations.push({
      ...{ promise: 'S1', kind: 'generation-skipped', partition, atMs },
      generations: [describePosition(last), position],
      detail: `a grant is to raise the generation by one`,
    })
  }
  return { violations, gaps: [] }
}

/** Does the grant name the grant of the record that stood before it? */
function namesAsPrevious({ previous }: OwnedRecord, last: PartitionRecord): boolean {
  const session = last.phase === 'vacant' ? last.previous?.session : last.owner.session
  return previous !== null && comparePositions(previous, last) === 0 && previous.session === session
}

/** A change that is no grant keeps position and owner. */
function changeFound({ last }: Chain, { partition, record, atMs }: RecordEvent): GrantsFound {
  const position = describePosition(record)
  if (comparePositions(record, last) !== 0) {
    const detail = `${position} (${record.phase}) follows ${describePosition(last)}: its grant is missing`
    return { violations: [], gaps: [{ partition, detail }] }
  }
  const before = last.phase === 'vacant' ? last.previous?.session : last.owner.session
  const after = record.phase === 'vacant' ? record.previous?.session : record.owner.session
  if (before === after) return { violations: [], gaps: [] }
  const violation: Violation = {
    ...{ promise: 'S2', kind: 'owner-changed', partition, atMs },
    generations: [position],
    detail: `from session ${before ?? 'none'} to ${after ?? 'none'} without a grant`,
  }
  return { violations: [violation], gaps: [] }
}
