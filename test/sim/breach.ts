/** A promise that a run has seen broken. */

export const PROMISE_NAMES = [
  ...(['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S7', 'S8', 'S9', 'S10', 'S11'] as const),
  ...(['L1', 'L2', 'L3', 'L4', 'L5', 'L6', 'L7'] as const),
  /** Code that threw, or an invariant of production code that fired. */
  'crash',
  /** The same plan took other steps the second time. */
  'trace',
] as const
export type PromiseName = (typeof PROMISE_NAMES)[number]

export type Breach = {
  readonly promise: PromiseName
  /** Null: of no single partition. */
  readonly partition: number | null
  readonly atMs: number
  readonly detail: string
}

export type BreachClass = 'safety' | 'liveness' | 'crash'

export function classOf(promise: PromiseName): BreachClass {
  if (promise === 'crash' || promise === 'trace') return 'crash'
  return promise.startsWith('S') ? 'safety' : 'liveness'
}

export function describeBreach({ promise, partition, atMs, detail }: Breach): string {
  const where = partition === null ? '' : ` of partition ${partition}`
  return `${promise}${where} broken at ${(atMs / 1000).toFixed(3)} s: ${detail}`
}

/** Takes the first breach; what follows from it is of no interest. */
export class BreachBox {
  first: Breach | null = null
  private readonly nowMs: () => number

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  report(promise: PromiseName, partition: number | null, detail: string): void {
    this.first ??= { promise, partition, atMs: this.nowMs(), detail }
  }

  crash(error: unknown, where: string): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.report('crash', null, `${where}: ${text}`)
  }
}
