/** Which operation ids and confirming reads a state mentions: a new one must be none of them. */
import type { OperationId, PartitionId } from '../../src/core/ids.ts'
import type { Backup } from './backups.ts'
import type { Layout } from './layout.ts'
import type { Sent } from './machine-moves.ts'
import type { Views } from './planner-view.ts'
import type { Occurrences as Asked } from './seat-steps.ts'
import type { Seats } from './seat-words.ts'
import type { Settings } from './settings.ts'
import type { Table } from './table.ts'
import type { Words } from './words.ts'

export class Occurrences implements Asked {
  private readonly words: Words
  private readonly seats: Seats
  private readonly layout: Layout
  private readonly partitions: number
  private readonly backups: Table<Backup>
  private readonly views: Views
  private readonly sent: Table<Sent>
  private row: Int32Array = new Int32Array(0)
  private process = 0
  private partition: PartitionId = 0

  constructor(options: {
    readonly words: Words
    readonly seats: Seats
    readonly layout: Layout
    readonly settings: Settings
    readonly backups: Table<Backup>
    readonly views: Views
    readonly sent: Table<Sent>
  }) {
    this.views = options.views
    this.sent = options.sent
    this.words = options.words
    this.seats = options.seats
    this.layout = options.layout
    this.partitions = options.settings.partitions
    this.backups = options.backups
  }

  /** Looks at this state from now on, for a step of this seat. */
  at(row: Int32Array, process: number, partition: PartitionId): void {
    this.row = row
    this.process = process
    this.partition = partition
  }

  hasOperation(operation: string): boolean {
    const { row, layout } = this
    if (this.isStored(layout.records, operation) || this.isBackedUp(operation)) return true
    for (const { view, requests } of layout.rebalancers) {
      if (this.isOnItsWay(row[view] as number, row[requests] as number, operation)) return true
    }
    for (const fields of layout.processes) {
      if (this.isStored(fields.maps, operation)) return true
      for (let partition = 0; partition < this.partitions; partition += 1) {
        const seat = row[fields.seats + partition] as number
        if (this.seats.of(seat).operations.includes(operation as OperationId)) return true
      }
      for (const item of this.words.items(row[fields.requests] as number)) {
        if (this.words.requests.of(item).operations.includes(operation)) return true
      }
      for (const item of this.words.items(row[fields.replies] as number)) {
        if (this.words.events.of(item).operations.includes(operation)) return true
      }
    }
    return false
  }

  /** Requests that no longer count are dropped, so only an answer on its way can be mistaken. */
  hasQuestion(id: OperationId): boolean {
    const { replies } = this.layout.processes[this.process] as { readonly replies: number }
    return this.words.items(this.row[replies] as number).some((item) => {
      const { event, partition } = this.words.events.of(item)
      return partition === this.partition && event.type === 'confirmed' && event.id === id
    })
  }

  /** What a rebalancer's map shows, and what it has sent. */
  private isOnItsWay(view: number, requests: number, operation: string): boolean {
    if (view !== 0 && this.views.of(view).records.some((record) => this.names(record, operation))) {
      return true
    }
    return this.words.items(requests).some((item) => {
      const entry = this.sent.of(item)
      const sent = entry.type === 'limbo' ? this.sent.of(entry.of) : entry
      if (sent.type !== 'commit') return false
      const { record, replaces } = this.words.commits.of(sent.commit)
      return this.names(record, operation) || this.names(replaces, operation)
    })
  }

  private isStored(records: number, operation: string): boolean {
    for (let partition = 0; partition < this.partitions; partition += 1) {
      if (this.names(this.row[records + partition] as number, operation)) return true
    }
    return false
  }

  private isBackedUp(operation: string): boolean {
    const backup = this.backups.find(this.row[this.layout.backup] as number)
    return backup?.records.some((record) => this.names(record, operation)) === true
  }

  private names(record: number, operation: string): boolean {
    return record !== 0 && this.words.stored(record)?.record.operation === operation
  }
}
