/**
 * What the queue of planned moves holds, counted once per queue: a step looks at it several times, and
 * most steps leave it as it is. Queues are never changed in place, so the counts are kept by identity.
 */
import { COMMITS_PER_BATCH_MAX } from './commit-batch.ts'
import type { MemberName } from './ids.ts'
import type { QueuedMove } from './rebalancer-state.ts'

export type QueueFacts = {
  /** How many moves each plan or rebalance has in it. */
  readonly byId: ReadonlyMap<string, number>
  readonly sources: ReadonlySet<MemberName>
  readonly targets: ReadonlySet<MemberName>
}

const known = new WeakMap<readonly QueuedMove[], QueueFacts>()

export function queueFacts(queue: readonly QueuedMove[]): QueueFacts {
  const kept = known.get(queue)
  if (kept !== undefined) return kept
  const byId = new Map<string, number>()
  const sources = new Set<MemberName>()
  const targets = new Set<MemberName>()
  for (const { id, from, to } of queue) {
    byId.set(id, (byId.get(id) ?? 0) + 1)
    sources.add(from)
    targets.add(to)
  }
  const facts: QueueFacts = { byId, sources, targets }
  known.set(queue, facts)
  return facts
}

/** Blocks of one source each, sources in turn by name; inside a block by partition. */
export function inBlocks(moves: readonly QueuedMove[]): readonly QueuedMove[] {
  const bySource = new Map<MemberName, QueuedMove[]>()
  for (const move of moves) {
    const others = bySource.get(move.from)
    if (others === undefined) bySource.set(move.from, [move])
    else others.push(move)
  }
  const sources = [...bySource].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, own]) => own)
  const ordered: QueuedMove[] = []
  for (let from = 0; ordered.length < moves.length; from += COMMITS_PER_BATCH_MAX) {
    for (const own of sources) ordered.push(...own.slice(from, from + COMMITS_PER_BATCH_MAX))
  }
  return ordered
}
