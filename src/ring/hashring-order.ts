/**
 * The ring: hashring as each partition's order of preference.
 *
 * Each member stands on the ring at 400 points (100 virtual nodes of 4), whoever else does: the number
 * is given per member and never computed from weights or totals, because hashring rounds such shares
 * down and would then move partitions between members that were there all along. Weight and balance are
 * the assignor's. Rings are built whole and never changed, and only `range` is asked.
 *
 * Promised: the same order from the same set of names in every process, and that a member more or less
 * leaves the others' relative order as it was. Not promised: an even spread; that is the assignor's.
 *
 * A digest of a partition does not depend on the members, so it is computed once per factory and kept as
 * one number; after a change of members only the ring is built anew. Each ring remembers the first choice
 * of each partition, which is what the assignor asks for most. Rings of the last few memberships are kept,
 * since members come and go between the same few sets.
 */
import { hash } from 'node:crypto'
import HashRing from 'hashring'
import type { MemberName, PartitionId } from '../core/ids.ts'
import type { PreferenceOrder, PreferenceOrderFactory } from '../core/preference-order.ts'

const VIRTUAL_NODES = 100
/** How many memberships' rings a factory keeps; a ring of 100 members is about 2 MB. */
const RINGS_KEPT = 8

/**
 * A factory with caches of its own; one per process will do.
 * @example
 * const orderOf = createRingOrder()
 * orderOf([memberName('a'), memberName('b')]).order(42, 1)   // the member that partition 42 likes best
 */
export function createRingOrder(): PreferenceOrderFactory {
  const points: number[] = []
  const rings = new Map<string, PreferenceOrder>()
  return (members) => {
    const sorted = [...new Set(members)].sort()
    const key = sorted.join(' ')
    const kept = rings.get(key)
    rings.delete(key)
    const order = kept ?? buildOrder(sorted, points)
    rings.set(key, order)
    for (const oldest of rings.keys()) {
      if (rings.size <= RINGS_KEPT) break
      rings.delete(oldest)
    }
    return order
  }
}

function buildOrder(sorted: readonly MemberName[], points: number[]): PreferenceOrder {
  if (sorted.length === 0) return { order: () => [] }
  let digest: (key: string) => Buffer = md5
  const ring = new HashRing(
    Object.fromEntries(sorted.map((name) => [name, { vnodes: VIRTUAL_NODES }])),
    (key) => digest(key),
    { 'vnode count': 1 },
  )
  digest = partitionDigests(points)
  const alone = new Map(sorted.map((name) => [name as string, [name]]))
  const firsts: (readonly MemberName[] | undefined)[] = []
  return {
    order(partition: PartitionId, count: number): readonly MemberName[] {
      if (count <= 0) return []
      if (count > 1) {
        return ring.range(String(partition), Math.min(count, sorted.length)) as MemberName[]
      }
      const kept = firsts[partition]
      if (kept !== undefined) return kept
      const first = alone.get(ring.range(String(partition), 1)[0] ?? '') ?? []
      firsts[partition] = first
      return first
    },
  }
}

/** Answers a partition's digest from the kept points: hashring reads its first four bytes only. */
function partitionDigests(points: number[]): (key: string) => Buffer {
  const bytes = Buffer.alloc(4)
  return (key) => {
    const partition = Number(key)
    let point = points[partition]
    if (point === undefined) {
      point = Number.parseInt(hash('md5', key).slice(0, 8), 16)
      points[partition] = point
    }
    bytes.writeUInt32BE(point, 0)
    return bytes
  }
}

function md5(key: string): Buffer {
  return hash('md5', key, 'buffer')
}
