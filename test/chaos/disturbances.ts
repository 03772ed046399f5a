/**
 * What else happened while something was waited for. A liveness bound of the design holds where nothing
 * else breaks meanwhile; where faults overlap, what is waited for has to come within 2T + 5 s of the last
 * of them that bears on it (as L4 has it), and where etcd's leader changed, within 2T + 5 s of its own
 * beginning.
 */
import type { FaultClass } from './fault-kinds.ts'
import type { FaultLine } from './faults.ts'
import { TTL_MS } from './layout.ts'

export const SETTLE_BOUND_MS = 2 * TTL_MS + 5000

/** A leader that etcd elects because of a fault comes a while after its beginning. */
const BEFORE_MS = 3000
const ROUNDS_MAX = 20

export type Disturbances = {
  readonly faults: readonly FaultLine[]
  /** When etcd was seen to have another leader. */
  readonly leaderChangesMs: readonly number[]
}

export type Due = {
  readonly dueMs: number
  /** Nothing else bore on it. */
  readonly isClean: boolean
}

/**
 * @param classes whose faults all bear on it
 * @param members whose own faults do
 * @param cause the fault that it begins with
 */
export function dueOf(
  { faults, leaderChangesMs }: Disturbances,
  waiting: {
    readonly fromMs: number
    /** When it came; what began later had no part in it. Infinity: it did not. */
    readonly cameMs: number
    readonly boundMs: number
    readonly classes: readonly FaultClass[]
    readonly members: ReadonlySet<string>
    readonly cause: FaultLine | null
  },
): Due {
  const { fromMs, cameMs, boundMs, classes, members, cause } = waiting
  const bearing = faults.filter(
    (fault) =>
      fault !== cause &&
      // It takes nothing away: who watches lists anew.
      fault.kind !== 'etcd-compact' &&
      (classes.includes(fault.class) || fault.targets.some((name) => members.has(name))),
  )
  let dueMs = fromMs + boundMs
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const before = dueMs
    for (const fault of bearing) {
      const healedMs = fault.toMs ?? Number.POSITIVE_INFINITY
      // What a member lost to a fault it gets back a session later.
      if (fault.fromMs > Math.min(dueMs, cameMs) || healedMs + BEFORE_MS < fromMs) continue
      dueMs = Math.max(dueMs, healedMs + SETTLE_BOUND_MS)
    }
    for (const atMs of leaderChangesMs) {
      if (atMs < fromMs - BEFORE_MS || atMs > Math.min(dueMs, cameMs)) continue
      dueMs = Math.max(dueMs, fromMs + SETTLE_BOUND_MS)
    }
    if (dueMs === before) break
  }
  return { dueMs, isClean: dueMs === fromMs + boundMs }
}
