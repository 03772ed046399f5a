/** What the benchmark and its processes say to each other. */

/** How many partitions a process serves now, and when that last changed. */
export type Held = { readonly serving: number; readonly changedAtMs: number }

export type ToProcess = { readonly id: number; readonly name: string; readonly argument: unknown }
export type FromProcess =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly detail: string }
  | { readonly type: 'held'; readonly held: Held }
