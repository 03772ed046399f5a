/**
 * The clock port. `monotonicMs` measures durations and deadlines: it never goes back, ignores jumps of
 * the wall clock, and counts time that the machine spent suspended. `wallMs` is for display and for a
 * new group's incarnation only.
 */
export type Timer = { cancel(): void }

export interface Clock {
  monotonicMs(): number
  wallMs(): number
  /** Calls back once, no earlier than `delayMs` from now. */
  schedule(delayMs: number, callback: () => void): Timer
}
