/** What the benchmark and its processes say to each other. */

/** How many partitions a process serves now, and when that last changed. */
export type Held = { readonly serving: number; readonly changedAtMs: number }

/** Who of a process says what it holds: Tenure's members, or the moves of the limit's group of that name. */
export const MEMBERS = ''

export type ToProcess = { readonly id: number; readonly name: string; readonly argument: unknown }
export type FromProcess =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly detail: string }
  | { readonly type: 'held'; readonly held: Held }
