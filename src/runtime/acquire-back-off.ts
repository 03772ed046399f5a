/** How long a member does not campaign for a partition that it failed to acquire: doubling, per partition. */
import type { PartitionId } from '../core/ids.ts'

const FIRST_MS = 1000
/** Every member may hold off by now, with the resource back: L4 and L6 allow 2T + 5 s, with T from 2 s. */
const MAX_MS = 8000

export class AcquireBackOff {
  private readonly failures = new Map<PartitionId, number>()

  failed(partition: PartitionId): { readonly retryMs: number; readonly isFirst: boolean } {
    const failures = (this.failures.get(partition) ?? 0) + 1
    this.failures.set(partition, failures)
    const retryMs = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10))
    return { retryMs, isFirst: failures === 1 }
  }

  succeeded(partition: PartitionId): void {
    this.failures.delete(partition)
  }
}
