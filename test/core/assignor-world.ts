/**
 * What the assignor's tests share: a cheap order of preference that knows nothing of rings, random
 * situations, and an oracle that finds the fewest moves by trying every balanced distribution.
 */
import fc from 'fast-check'
import type { AssignmentInput } from '../../src/core/assignor.ts'
import type { MemberName, PartitionId } from '../../src/core/ids.ts'
import { memberName } from '../../src/core/ids.ts'
import { fnv1a32 } from '../../src/core/partition-key.ts'
import type { PreferenceOrder } from '../../src/core/preference-order.ts'

export const NAMES: readonly MemberName[] = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(memberName)

/** Orders members by a hash of partition and name: consistent, like a ring, and easy to follow. */
export function hashOrder(members: readonly MemberName[]): PreferenceOrder {
  const weigh = (partition: PartitionId, name: MemberName) =>
    fnv1a32(`${name}/${partition}/${name}`)
  return {
    order: (partition, count) =>
      [...members]
        .sort((left, right) => weigh(partition, left) - weigh(partition, right))
        .slice(0, count),
  }
}

export function situation(fields: Partial<AssignmentInput>): AssignmentInput {
  const members = fields.members ?? []
  return {
    partitions: 0,
    members,
    owners: [],
    keeping: new Set(),
    lastOwners: [],
    cameFrom: () => null,
    excluded: new Set(),
    order: hashOrder(members.map((entry) => entry.member)),
    ...fields,
  }
}

/** Members of weight 1 without limit. */
export function equals(...names: readonly string[]): AssignmentInput['members'] {
  return names.map((name) => ({ member: memberName(name), weight: 1, capacity: null }))
}

export type Shape = { readonly weights: number; readonly isCapped: boolean }

/** Any state that a group may be in: members, cordoned, leaving, vacant, excluded, balanced or not. */
export function anySituation(shape: Shape): fc.Arbitrary<AssignmentInput> {
  const role = fc.constantFrom('member', 'member', 'member', 'keeping', 'away')
  const entry = fc.record({
    role,
    weight: fc.integer({ min: shape.weights === 1 ? 1 : 0, max: shape.weights }),
    capacity: shape.isCapped ? fc.option(fc.integer({ min: 0, max: 12 })) : fc.constant(null),
  })
  const name = fc.option(fc.constantFrom(...NAMES), { freq: 3 })
  return fc
    .record({
      entries: fc.array(entry, { minLength: NAMES.length, maxLength: NAMES.length }),
      owners: fc.array(name, { maxLength: 40, size: 'max' }),
      lastOwners: fc.array(name, { maxLength: 40, size: 'max' }),
      origins: fc.array(name, { maxLength: 40, size: 'max' }),
      excluded: fc.array(fc.nat(39), { maxLength: 4, size: 'max' }),
    })
    .map(({ entries, owners, lastOwners, origins, excluded }) => {
      const all = NAMES.map((member, index) => ({ member, ...entries[index] }))
      return situation({
        partitions: owners.length,
        members: all
          .filter((one) => one.role === 'member')
          .map(({ member, weight = 1, capacity = null }) => ({ member, weight, capacity })),
        keeping: new Set(all.filter((one) => one.role === 'keeping').map((one) => one.member)),
        owners,
        lastOwners,
        cameFrom: (partition) => origins[partition] ?? null,
        excluded: new Set(excluded),
      })
    })
}

export type Tally = {
  /** Partitions to share: neither excluded nor kept. */
  readonly available: number
  readonly held: ReadonlyMap<MemberName, number>
  readonly vacant: number
  readonly leaving: number
}

export function tally(input: AssignmentInput): Tally {
  const held = new Map(input.members.map(({ member }) => [member, 0]))
  let available = 0
  let vacant = 0
  let leaving = 0
  for (let partition = 0; partition < input.partitions; partition += 1) {
    const owner = input.owners[partition] ?? null
    if (input.excluded.has(partition)) continue
    if (owner !== null && input.keeping.has(owner)) continue
    available += 1
    if (owner === null) vacant += 1
    else if (held.has(owner)) held.set(owner, (held.get(owner) ?? 0) + 1)
    else leaving += 1
  }
  return { available, held, vacant, leaving }
}

/** The real-valued share of each member, capacities filled one member at a time. */
export function shares(input: AssignmentInput): ReadonlyMap<MemberName, number> {
  const result = new Map<MemberName, number>(input.members.map(({ member }) => [member, 0]))
  let left = tally(input).available
  let open = input.members.filter((entry) => entry.weight > 0)
  while (open.length > 0) {
    const total = open.reduce((sum, entry) => sum + entry.weight, 0)
    const tightest = open.reduce((least, entry) =>
      (entry.capacity ?? Infinity) / entry.weight < (least.capacity ?? Infinity) / least.weight
        ? entry
        : least,
    )
    if ((tightest.capacity ?? Infinity) * total >= left * tightest.weight) {
      for (const entry of open) result.set(entry.member, (left * entry.weight) / total)
      return result
    }
    result.set(tightest.member, tightest.capacity ?? 0)
    left -= tightest.capacity ?? 0
    open = open.filter((entry) => entry !== tightest)
  }
  return result
}

/** Every way to round the shares that gives away as much as they sum to. */
export function roundings(input: AssignmentInput): readonly ReadonlyMap<MemberName, number>[] {
  const entries = [...shares(input)]
  const sum = Math.round(entries.reduce((total, [, share]) => total + share, 0))
  const found: Map<MemberName, number>[] = []
  const visit = (index: number, left: number, chosen: readonly [MemberName, number][]): void => {
    const entry = entries[index]
    if (entry === undefined) {
      if (left === 0) found.push(new Map(chosen))
      return
    }
    const [member, share] = entry
    const near = Math.round(share)
    const isWhole = Math.abs(share - near) < 1e-9
    const options = isWhole ? [near] : [Math.floor(share), Math.ceil(share)]
    for (const option of options) visit(index + 1, left - option, [...chosen, [member, option]])
  }
  visit(0, sum, [])
  return found
}

/** The fewest balancing moves (leaving partitions apart) that any of these distributions needs. */
export function fewestMoves(
  input: AssignmentInput,
  distributions: readonly ReadonlyMap<MemberName, number>[],
): number {
  const { held, vacant, leaving } = tally(input)
  const needs = distributions.map((targets) => {
    let surplus = 0
    let room = -vacant - leaving
    for (const [member, count] of held) {
      surplus += Math.max(0, count - (targets.get(member) ?? 0))
      room += Math.max(0, (targets.get(member) ?? 0) - count)
    }
    return Math.min(surplus, Math.max(0, room))
  })
  return Math.min(...needs)
}
