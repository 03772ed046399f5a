/**
 * What happened in a run, in order: for the timeline of a failing seed, and as a hash by which two runs of
 * one plan are compared. Texts are made only when they are wanted.
 */
export type TraceEntry = {
  readonly atMs: number
  /** Null: it concerns every partition. */
  readonly partition: number | null
  readonly text: string
}

export class Trace {
  readonly entries: TraceEntry[] = []
  private readonly nowMs: () => number
  private high = 0x811c9dc5
  private low = 0x01000193

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  note(partition: number | null, text: string): void {
    this.noteAt(this.nowMs(), partition, text)
  }

  noteAt(atMs: number, partition: number | null, text: string): void {
    this.entries.push({ atMs, partition, text })
    this.mix(Math.round(atMs * 1000))
    for (let index = 0; index < text.length; index += 1) this.mix(text.charCodeAt(index))
  }

  hash(): string {
    return hex(this.high) + hex(this.low)
  }

  private mix(value: number): void {
    this.high = Math.imul(this.high ^ value, 0x01000193)
    this.low = Math.imul(this.low + value, 0x9e3779b1) ^ (this.high >>> 15)
  }
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0')
}
