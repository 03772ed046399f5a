/** The seats of a member: one per partition that ever concerned it, and which of them are not absent. */
import type { PartitionId } from '../core/ids.ts'
import type { Grant, Seat } from '../core/ownership-state.ts'
import { NEW_SEAT } from '../core/ownership-state.ts'
import { comparePositions } from '../core/token.ts'

export class SeatTable {
  private readonly seats = new Map<PartitionId, Seat>()
  private readonly seated = new Set<PartitionId>()

  /** Partitions that are not absent here; goes on while it is read. */
  get active(): ReadonlySet<PartitionId> {
    return this.seated
  }

  /** Null: the partition never concerned this member. */
  find(partition: PartitionId): Seat | null {
    return this.seats.get(partition) ?? null
  }

  at(partition: PartitionId): Seat {
    return this.seats.get(partition) ?? NEW_SEAT
  }

  put(partition: PartitionId, seat: Seat): void {
    this.seats.set(partition, seat)
    if (seat.now.status === 'absent') this.seated.delete(partition)
    else this.seated.add(partition)
  }

  /** Forgets what is held, not what was remembered; returns the seat as it was. */
  vacate(partition: PartitionId): Seat {
    const seat = this.at(partition)
    this.put(partition, { ...NEW_SEAT, highest: seat.highest })
    return seat
  }

  /** Whether the partition is held by exactly this record, and not being given up. */
  standsBy(partition: PartitionId, text: string): boolean {
    const now = this.seats.get(partition)?.now
    if (now?.status !== 'acquiring' && now?.status !== 'serving') return false
    return now.stored.raw === text
  }

  /** Whether the partition is held under this grant, work may run or not. */
  holds(partition: PartitionId, grant: Grant): boolean {
    const now = this.seats.get(partition)?.now
    if (now === undefined || now.status === 'absent') return false
    if (now.status === 'campaigning' || now.status === 'halting') return false
    return (
      comparePositions(now.grant, grant) === 0 && now.grant.owner.session === grant.owner.session
    )
  }
}
