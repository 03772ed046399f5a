/** Seats by number, with what the rest of the model asks of them worked out once. */
import type { OperationId, PartitionId } from '../../src/core/ids.ts'
import type { Ownership, Seat } from '../../src/core/ownership-state.ts'
import { NEW_SEAT } from '../../src/core/ownership-state.ts'
import { Table } from './table.ts'
import { grantKey, positionKey, type Words } from './words.ts'

export type SeatEntry = {
  readonly seat: Seat
  readonly status: Ownership['status']
  /** The machine would admit work, were it for the clock. */
  readonly open: boolean
  /** The grant that is held or being given up; 0: none. */
  readonly grant: number
  readonly operations: readonly string[]
}

export class Seats {
  private readonly table = new Table<SeatEntry>()
  private readonly words: Words
  /** The seat that every member begins with. */
  readonly fresh: number

  constructor(words: Words) {
    this.words = words
    this.fresh = this.id(0, NEW_SEAT)
  }

  id(partition: PartitionId, seat: Seat): number {
    return this.table.id(this.key(partition, seat), () => this.entry(seat))
  }

  of(seat: number): SeatEntry {
    return this.table.of(seat)
  }

  get size(): number {
    return this.table.size
  }

  private key(partition: PartitionId, { highest, asked, now }: Seat): string {
    const parts: (string | number)[] = [now.status, positionKey(highest), asked ?? '-']
    // Equal seats of two partitions are one as long as they name no record.
    if ('stored' in now) parts.push(this.words.record(partition, now.stored))
    if ('grant' in now) parts.push(grantKey(now.grant))
    if ('commit' in now) parts.push(`c${this.words.commit(now.commit)}`)
    if ('trust' in now) parts.push(now.trust)
    if ('ending' in now) parts.push(now.ending)
    if ('giveUp' in now) parts.push(now.giveUp.to ?? '-')
    if ('overdueAtMs' in now) parts.push(now.overdueAtMs === null ? 'told' : 'due')
    if (now.status === 'halting') parts.push(positionKey(now.highest))
    return parts.join()
  }

  private entry(seat: Seat): SeatEntry {
    const { now } = seat
    const operations: OperationId[] = []
    if ('stored' in now) operations.push(now.stored.record.operation)
    if ('commit' in now) operations.push(now.commit.next.operation)
    return {
      seat,
      status: now.status,
      open: now.status === 'serving' && now.trust === 'sure',
      grant: 'grant' in now ? this.words.grant(now.grant) : 0,
      operations,
    }
  }
}
