/**
 * Timers of the virtual clock, ordered by time and then by the order of their scheduling: a binary heap.
 * Cancelled timers stay in the heap until their turn and are skipped there.
 */
import type { Timer } from '../ports/clock.ts'

export class QueuedTimer implements Timer {
  readonly atMs: number
  readonly order: number
  readonly #queue: TimerQueue
  /** Null once cancelled or fired. */
  #callback: (() => void) | null

  constructor(queue: TimerQueue, atMs: number, order: number, callback: () => void) {
    this.#queue = queue
    this.atMs = atMs
    this.order = order
    this.#callback = callback
  }

  get isWaiting(): boolean {
    return this.#callback !== null
  }

  fire(): void {
    const callback = this.#callback
    this.cancel()
    callback?.()
  }

  cancel(): void {
    if (this.#callback === null) return
    this.#callback = null
    this.#queue.pending -= 1
  }
}

export class TimerQueue {
  /** Timers neither fired nor cancelled. */
  pending = 0
  readonly #heap: QueuedTimer[] = []
  #nextOrder = 0

  add(atMs: number, callback: () => void): QueuedTimer {
    const timer = new QueuedTimer(this, atMs, this.#nextOrder, callback)
    this.#nextOrder += 1
    this.pending += 1
    this.#heap.push(timer)
    this.#rise(this.#heap.length - 1)
    return timer
  }

  /** The earliest timer that is not cancelled; it stays queued. */
  peek(): QueuedTimer | null {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined) return null
      if (first.isWaiting) return first
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
    this.#sink(last)
  }

  #rise(from: number): void {
    const heap = this.#heap
    const timer = heap[from] as QueuedTimer
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const other = heap[above] as QueuedTimer
      if (isBefore(other, timer)) break
      heap[index] = other
      index = above
    }
    heap[index] = timer
  }

  #sink(timer: QueuedTimer): void {
    const heap = this.#heap
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      const right = child + 1
      if (right < heap.length && isBefore(heap[right] as QueuedTimer, heap[child] as QueuedTimer)) {
        child = right
      }
      const below = heap[child] as QueuedTimer
      if (isBefore(timer, below)) break
      heap[index] = below
      index = child
    }
    heap[index] = timer
  }
}

function isBefore(a: QueuedTimer, b: QueuedTimer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
