/**
 * How far a partition's messages are done, where several are worked on at once: the in-order checkpoint
 * is the highest sequence below which nothing is open.
 *
 * I1  `through` never goes back, and every message that was taken at or below it is settled.
 * I2  a message that was settled is never taken again.
 */
export class Progress {
  /** All at or below are settled. */
  through: number
  /** Taken and not settled. */
  private readonly open = new Set<number>()
  /** Settled above an open one. */
  private readonly ahead = new Set<number>()

  constructor(through: number) {
    this.through = through
  }

  /** False when it is settled already. Sequences come in rising order. */
  take(sequence: number): boolean {
    if (sequence <= this.through || this.ahead.has(sequence)) return false
    this.open.add(sequence)
    return true
  }

  /** What `through` would be if this one were settled now: what its effect may commit as checkpoint. */
  reach(sequence: number): number {
    let lowestOpen = Number.POSITIVE_INFINITY
    for (const other of this.open) {
      if (other !== sequence) lowestOpen = Math.min(lowestOpen, other)
    }
    let reached = this.through
    for (const settled of [...this.ahead, sequence]) {
      if (settled < lowestOpen) reached = Math.max(reached, settled)
    }
    return reached
  }

  settle(sequence: number): void {
    this.through = this.reach(sequence)
    this.open.delete(sequence)
    this.ahead.add(sequence)
    for (const settled of this.ahead) {
      if (settled <= this.through) this.ahead.delete(settled)
    }
  }

  /** What is open is worked on no more; it will be taken again. */
  abandon(): void {
    this.open.clear()
  }
}
