/**
 * One process of the simulated world, from its start to its end. Its name is unique: a member that is
 * started again lives anew. Code of a process that was killed may still be referenced by promises of the
 * world; it must never run again, which `running` and the process clock see to.
 */
import type { ProcessClock } from '../../src/testing/index.ts'

export class Life {
  readonly name: string
  readonly clock: ProcessClock

  constructor(name: string, clock: ProcessClock) {
    this.name = name
    this.clock = clock
  }

  get isOver(): boolean {
    return this.clock.status === 'killed'
  }

  get isPaused(): boolean {
    return this.clock.status === 'paused'
  }

  /** Resolves while the process runs; for one that was killed, never. */
  running(): Promise<void> | undefined {
    if (this.clock.status === 'running') return undefined
    return this.sleep(0)
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.schedule(delayMs, resolve)
    })
  }
}
