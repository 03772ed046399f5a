/** An observer's process in the simulated world. */
import { createObserver } from '../../src/runtime/observer.ts'
import type { Observer } from '../../src/runtime/observer-types.ts'
import { type Running, WorldProcess } from './world-process.ts'

export class ObserverProcess extends WorldProcess {
  observer: Observer | null = null
  /** Called with each change of the map of this process. */
  onChange: ((observer: Observer) => void) | null = null

  protected begin({ life, broadcast, random }: Running): void {
    const { group } = this.base
    const observer = createObserver({ group, broadcast, clock: life.clock, random })
    observer.ready.catch(() => undefined)
    observer.onChange(() => this.onChange?.(observer))
    this.observer = observer
  }

  protected override ending(): void {
    this.observer = null
  }
}
