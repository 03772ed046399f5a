/**
 * The tables of the model: records, grants, commits, requests, events. Operation ids are named by what
 * they stamp: the content of the write, and the smallest number that no equal content in the same state
 * has. Which random id a write has means nothing, so states that differ only in it become one state.
 */
import type { Commit, StoredRecord } from '../../src/core/commit.ts'
import type { OperationId, PartitionId } from '../../src/core/ids.ts'
import type { Grant, OwnershipEvent } from '../../src/core/ownership-state.ts'
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import { encodePartitionRecord, recordOwner } from '../../src/core/partition-record.ts'
import type { Position } from '../../src/core/token.ts'
import { comparePositions } from '../../src/core/token.ts'
import { sessionOf } from './cast.ts'
import { Memory, pair, Table } from './table.ts'

/** What a step stamps its writes with; renamed before anything is kept. */
export const UNNAMED = 'new' as OperationId

export type RecordEntry = {
  readonly stored: StoredRecord
  readonly partition: PartitionId
  /** The owner's session; 0: vacant. */
  readonly owner: number
  /** Grows with each change of one partition's record, while nothing is restored. */
  readonly order: number
}

export type CommitEntry = {
  readonly commit: Commit
  /** The record that it writes, and the one that it replaces. */
  readonly record: number
  readonly replaces: number
}

export type Request =
  /** `from`: the grant that it gives up, or 0. */
  | { readonly type: 'commit'; readonly commit: number; readonly from: number }
  /** Its sender was told `unsettled`; it may still land, and nobody hears of it. */
  | { readonly type: 'limbo'; readonly commit: number; readonly from: number }
  | { readonly type: 'confirm'; readonly partition: PartitionId; readonly id: OperationId }

export type EventEntry = {
  readonly event: OwnershipEvent
  readonly partition: PartitionId
  readonly operations: readonly string[]
}

const PHASES = ['owned', 'revoking', 'halted', 'vacant']

export class Words {
  readonly records = new Table<RecordEntry>()
  readonly grants = new Table<Grant>()
  readonly commits = new Table<CommitEntry>()
  readonly requests = new Table<Request & { readonly operations: readonly string[] }>()
  readonly events = new Table<EventEntry>()
  /** Sorted lists of numbers: requests or replies on their way. */
  readonly bags = new Table<readonly number[]>()
  private readonly added = new Memory<number>()
  private readonly removed = new Memory<number>()
  private readonly seen = new Memory<number>()
  private readonly answers = new Memory<number>()
  private readonly refusals = new Memory<number>()
  private readonly confirmations = new Memory<number>()
  private readonly contents = new Map<string, number>()
  private readonly byOperation = new Map<string, number>()

  record(partition: PartitionId, stored: StoredRecord | null): number {
    if (stored === null) return 0
    return this.records.id(`${partition} ${stored.raw}`, () => {
      const { record } = stored
      const owner = recordOwner(record)
      const order =
        ((record.incarnation * 100 + record.generation) * 4 + PHASES.indexOf(record.phase)) * 20 +
        (record.phase === 'revoking' ? record.move.rewrites : 0)
      return { stored, partition, order, owner: owner === null ? 0 : sessionOf(owner.session) }
    })
  }

  /** The record that the write of this operation made. */
  recordOfOperation(partition: PartitionId, operation: string): number {
    return this.byOperation.get(`${partition} ${operation}`) ?? 0
  }

  stored(record: number): StoredRecord | null {
    return this.records.find(record)?.stored ?? null
  }

  grant(grant: Grant | null): number {
    return grant === null ? 0 : this.grants.id(grantKey(grant), () => grant)
  }

  commit(commit: Commit): number {
    const { partition, expected, value, requires } = commit
    const key = `${partition}|${expected}|${value}|${JSON.stringify(requires)}`
    return this.commits.id(key, () => {
      const record = this.record(partition, { record: commit.next, raw: value })
      this.byOperation.set(`${partition} ${commit.next.operation}`, record)
      return { commit, record, replaces: this.recordOfText(partition, expected) }
    })
  }

  request(request: Request): number {
    const key = JSON.stringify(request)
    return this.requests.id(key, () => ({
      ...request,
      operations:
        request.type === 'confirm'
          ? []
          : operationsOfCommit(this.commits.of(request.commit).commit, this),
    }))
  }

  event(partition: PartitionId, event: OwnershipEvent): number {
    const key = `${partition} ${eventKey(event)}`
    return this.events.id(key, () => ({ event, partition, operations: operationsOfEvent(event) }))
  }

  bag(items: readonly number[]): number {
    if (items.length === 0) return 0
    const sorted = [...items].sort((a, b) => a - b)
    return this.bags.id(sorted.join(), () => sorted)
  }

  items(bag: number): readonly number[] {
    return bag === 0 ? EMPTY : this.bags.of(bag)
  }

  with(bag: number, item: number): number {
    return this.added.of(pair(bag, item), () => this.bag([...this.items(bag), item]))
  }

  without(bag: number, item: number): number {
    return this.removed.of(pair(bag, item), () => {
      const items = [...this.items(bag)]
      items.splice(items.indexOf(item), 1)
      return this.bag(items)
    })
  }

  /** The answers to a commit, `record` being what stands. */
  committed(commit: number): number {
    return this.answers.of(pair(commit, 0), () => {
      const { partition, next } = this.commits.of(commit).commit
      return this.event(partition, { type: 'committed', operation: next.operation })
    })
  }

  refused(commit: number, record: number): number {
    return this.refusals.of(pair(commit, record), () => {
      const { partition, next } = this.commits.of(commit).commit
      const stands = this.stored(record)
      return this.event(partition, { type: 'refused', operation: next.operation, stands })
    })
  }

  refusedAll(commit: number): number {
    return this.answers.of(pair(commit, 1), () => {
      const { partition, next } = this.commits.of(commit).commit
      return this.event(partition, { type: 'refused-all', operation: next.operation })
    })
  }

  unsettled(commit: number): number {
    return this.answers.of(pair(commit, 2), () => {
      const { partition, next } = this.commits.of(commit).commit
      return this.event(partition, { type: 'unsettled', operation: next.operation })
    })
  }

  /** The answer to a confirming read. */
  confirmed(request: number, record: number): number {
    return this.confirmations.of(pair(request, record), () => {
      const read = this.requests.of(request)
      if (read.type !== 'confirm') throw new Error('only a read is confirmed')
      const { partition, id } = read
      return this.event(partition, { type: 'confirmed', id, stored: this.stored(record) })
    })
  }

  /** The event that the map shows this record. */
  shows(partition: PartitionId, record: number): number {
    return this.seen.of(pair(record, partition), () =>
      this.event(partition, { type: 'seen', stored: this.stored(record) }),
    )
  }

  /** The number of a write's content, whatever its operation id. */
  content(commit: Commit): number {
    const text = encodePartitionRecord({ ...commit.next, operation: UNNAMED })
    const key = `${commit.partition} ${text}`
    let content = this.contents.get(key)
    if (content === undefined) {
      content = this.contents.size + 1
      this.contents.set(key, content)
    }
    return content
  }

  private recordOfText(partition: PartitionId, raw: string | null): number {
    if (raw === null) return 0
    // Whoever replaces a record has seen it, so it is known here.
    return this.records.id(`${partition} ${raw}`, () => {
      throw new Error(`an unknown record is replaced: ${raw}`)
    })
  }
}

const EMPTY: readonly number[] = []

export function operationName(content: number, number: number): OperationId {
  return `${content}.${number}` as OperationId
}

export function named(commit: Commit, operation: OperationId): Commit {
  const next: PartitionRecord = { ...commit.next, operation }
  return { ...commit, next, value: encodePartitionRecord(next) }
}

export function grantKey(grant: Grant): string {
  return `${grant.incarnation}.${grant.generation}.${grant.owner.session}`
}

export function positionKey({ incarnation, generation }: Position): string {
  return `${incarnation}.${generation}`
}

export function isAbove(a: Position, b: Position): boolean {
  return comparePositions(a, b) > 0
}

export function operationsOfCommit(commit: Commit, words: Words): readonly string[] {
  const replaced = words.stored(words.commits.of(words.commit(commit)).replaces)
  return replaced === null
    ? [commit.next.operation]
    : [commit.next.operation, replaced.record.operation]
}

function operationsOfEvent(event: OwnershipEvent): readonly string[] {
  switch (event.type) {
    case 'seen':
    case 'confirmed':
    case 'campaign':
      return event.stored === null ? [] : [event.stored.record.operation]
    case 'refused':
      return event.stands === null
        ? [event.operation]
        : [event.operation, event.stands.record.operation]
    case 'committed':
    case 'refused-all':
    case 'unsettled':
      return [event.operation]
    default:
      return []
  }
}

function eventKey(event: OwnershipEvent): string {
  switch (event.type) {
    case 'seen':
    case 'campaign':
      return `${event.type} ${event.stored?.raw}`
    case 'confirmed':
      return `${event.type} ${event.id} ${event.stored?.raw}`
    case 'refused':
      return `${event.type} ${event.operation} ${event.stands?.raw}`
    case 'committed':
    case 'refused-all':
    case 'unsettled':
      return `${event.type} ${event.operation}`
    default:
      return JSON.stringify(event)
  }
}
