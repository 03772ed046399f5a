/**
 * Runs tasks at once, those of one key one after the other in the order in which they came.
 *
 *   add ──▶ waiting (for its key, for a place) ──▶ running ──▶ settled
 *                    │ a task failed: dropped, never begun
 *
 * Bounded twice: how many run, and how many are held (running and waiting). The first failure ends it:
 * nothing is begun after it, and `failure` keeps it.
 */
import { createDeferred, type Deferred } from '../runtime/deferred.ts'

type Task = {
  readonly key: string
  readonly work: () => Promise<void>
  readonly dropped: () => void
}

export class Lanes {
  failure: { readonly error: unknown } | null = null
  private readonly runningMax: number
  private readonly heldMax: number
  private readonly onFailure: () => void
  private readonly onSettled: () => void
  private readonly waiting: Task[] = []
  private readonly busyKeys = new Set<string>()
  private changed: Deferred<void> | null = null

  constructor(options: {
    readonly runningMax: number
    readonly heldMax: number
    /** Called once. */
    readonly onFailure?: () => void
    /** Called after each task, its place being free again. */
    readonly onSettled?: () => void
  }) {
    this.runningMax = options.runningMax
    this.heldMax = options.heldMax
    this.onFailure = options.onFailure ?? (() => {})
    this.onSettled = options.onSettled ?? (() => {})
  }

  /** Running and waiting. */
  get held(): number {
    return this.busyKeys.size + this.waiting.length
  }

  /** @param dropped called instead of `work` when that never begins */
  add(key: string, work: () => Promise<void>, dropped: () => void = () => {}): void {
    if (this.failure !== null) {
      dropped()
      return
    }
    this.waiting.push({ key, work, dropped })
    this.begin()
  }

  /** Resolves once another task may be held. */
  async room(): Promise<void> {
    while (this.held >= this.heldMax) await this.change()
  }

  /** Resolves once nothing runs or waits. */
  async idle(): Promise<void> {
    while (this.held > 0) await this.change()
  }

  private begin(): void {
    const passed = new Set<string>()
    for (let index = 0; index < this.waiting.length; ) {
      if (this.busyKeys.size >= this.runningMax) return
      const task = this.waiting[index]
      if (task === undefined) return
      if (passed.has(task.key) || this.busyKeys.has(task.key)) {
        passed.add(task.key)
        index += 1
        continue
      }
      this.waiting.splice(index, 1)
      this.busyKeys.add(task.key)
      void this.run(task)
    }
  }

  private async run({ key, work }: Task): Promise<void> {
    try {
      await work()
    } catch (error: unknown) {
      this.fail(error)
    }
    this.busyKeys.delete(key)
    this.begin()
    this.changed?.resolve()
    this.changed = null
    this.onSettled()
  }

  private fail(error: unknown): void {
    if (this.failure !== null) return
    this.failure = { error }
    for (const { dropped } of this.waiting.splice(0)) dropped()
    this.onFailure()
  }

  private change(): Promise<void> {
    this.changed ??= createDeferred<void>()
    return this.changed.promise
  }
}
