/** Who runs the work: a member tells it what to do with each partition, and hears when it is done. */
import type { PartitionId } from '../core/ids.ts'
import type { GiveUp, Grant } from '../core/ownership-state.ts'
import type { LossCause } from '../ports/telemetry.ts'
import type { SessionDriver } from './session-driver.ts'

export interface PartitionHost {
  /** Granted: acquire, then call `acquired` or `acquireFailed`. */
  begin(partition: PartitionId, grant: Grant, session: SessionDriver): void
  open(partition: PartitionId): void
  suspend(partition: PartitionId): void
  /** Refuse new work, finish what is under way, release; then call `drained`. */
  drain(partition: PartitionId, giveUp: GiveUp): void
  /** Handed over, or moved on after the drain. */
  released(partition: PartitionId, grant: Grant): void
  /** No longer owner. At once. */
  lose(partition: PartitionId, cause: LossCause): void
  /** A session is live, the map is known. */
  sessionLive(session: SessionDriver): void
  /** The session's deadline moved. */
  proved(): void
}
