/** How much work a worker does at once, over all its partitions. Work beyond it waits its turn. */
import { createDeferred, type Deferred } from './deferred.ts'

export class WorkSlots {
  private readonly limit: number
  private taken = 0
  private changed: Deferred<void> | null = null

  /** @param limit most pieces of work at once; `Infinity` for no limit. */
  constructor(limit: number) {
    this.limit = limit
  }

  hasRoom(): boolean {
    return this.taken < this.limit
  }

  take(): void {
    this.taken += 1
  }

  free(): void {
    this.taken -= 1
    this.changed?.resolve()
    this.changed = null
  }

  /** Resolves when a slot was freed. */
  change(): Promise<void> {
    this.changed ??= createDeferred<void>()
    return this.changed.promise
  }
}
