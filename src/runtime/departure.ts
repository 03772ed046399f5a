/**
 * A member's leaving: where each of its partitions goes, and when nothing is left.
 *
 *   staying ──begin──▶ leaving ──everything handed over, lost, or kept──▶ empty
 *
 * In a group with a restart grace, drained partitions are *kept*: their records stay as they are, and
 * the others wait for this member's name to come back.
 */
import type { MemberName, PartitionId } from '../core/ids.ts'
import { createDeferred } from './deferred.ts'

export class Departure {
  private targets: ReadonlyMap<PartitionId, MemberName | null> | null = null
  private readonly kept = new Set<PartitionId>()
  private readonly emptied = createDeferred<void>()

  get isUnderWay(): boolean {
    return this.targets !== null
  }

  /** Resolves when nothing is held that is not kept. */
  get empty(): Promise<void> {
    return this.emptied.promise
  }

  /** @param targets of all that is held; null: whom elections decide on */
  begin(targets: ReadonlyMap<PartitionId, MemberName | null>): void {
    this.targets ??= targets
  }

  /** Who should have the partition; null as above; undefined: it was granted after leaving began. */
  goesTo(partition: PartitionId): MemberName | null | undefined {
    return this.targets?.get(partition)
  }

  keep(partition: PartitionId): void {
    this.kept.add(partition)
  }

  keeps(partition: PartitionId): boolean {
    return this.kept.has(partition)
  }

  /** Call after what is held has shrunk. */
  check(held: Iterable<PartitionId>): void {
    if (this.targets === null) return
    for (const partition of held) if (!this.kept.has(partition)) return
    this.emptied.resolve()
  }

  /** The member closes, whatever is left. */
  end(): void {
    this.emptied.resolve()
  }
}
