/**
 * Timers of the virtual clock, ordered by time and then by the order of their scheduling: a binary heap.
 * Cancelled timers stay in the heap until their turn and are skipped there.
 */
export type QueuedTimer = {
  readonly atMs: number
  readonly order: number
  /** Null once cancelled or fired. */
  callback: (() => void) | null
}

export class TimerQueue {
  readonly #heap: QueuedTimer[] = []
  #nextOrder = 0

  add(atMs: number, callback: () => void): QueuedTimer {
    const timer: QueuedTimer = { atMs, order: this.#nextOrder, callback }
    this.#nextOrder += 1
    this.#heap.push(timer)
    this.#rise(this.#heap.length - 1)
    return timer
  }

  /** The earliest timer that is not cancelled; it stays queued. */
  peek(): QueuedTimer | null {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined) return null
      if (first.callback !== null) return first
      this.#removeFirst()
    }
  }

  take(): QueuedTimer | null {
    const first = this.peek()
    if (first !== null) this.#removeFirst()
    return first
  }

  #removeFirst(): void {
    const last = this.#heap.pop()
    if (last === undefined || this.#heap.length === 0) return
    this.#heap[0] = last
    this.#sink()
  }

  #rise(from: number): void {
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      if (!this.#swapUnlessOrdered(above, index)) return
      index = above
    }
  }

  #sink(): void {
    const heap = this.#heap
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      if (left >= heap.length) return
      const right = left + 1
      const child = right < heap.length && this.#isBefore(right, left) ? right : left
      if (!this.#swapUnlessOrdered(index, child)) return
      index = child
    }
  }

  #swapUnlessOrdered(above: number, below: number): boolean {
    if (!this.#isBefore(below, above)) return false
    const heap = this.#heap
    const moved = heap[below] as QueuedTimer
    heap[below] = heap[above] as QueuedTimer
    heap[above] = moved
    return true
  }

  #isBefore(one: number, other: number): boolean {
    const a = this.#heap[one] as QueuedTimer
    const b = this.#heap[other] as QueuedTimer
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
  }
}
