/**
 * The assignor's question, put together from the group's state: who may receive, who holds what, what
 * gets no owner. Elections and planned moves ask the same question, so they never pull apart.
 */
import type { AssignableMember, Assignment } from './assignor.ts'
import { assign } from './assignor.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { MemberRecord } from './member-record.ts'
import type { PreferenceOrderFactory } from './preference-order.ts'

export type AssignmentOptions = {
  /** Members that must receive nothing and whose partitions must move (they leave or are drained). */
  readonly leaving?: ReadonlySet<MemberName>
  /** Vacant partitions that somebody was already chosen for; they count as held. */
  readonly chosen?: ReadonlyMap<PartitionId, MemberName>
  /** Partitions that their owner is giving up to nobody in particular: as vacant, without a claim to them. */
  readonly given?: ReadonlySet<PartitionId>
}

export function assignGroup(
  state: GroupState,
  orderOf: PreferenceOrderFactory,
  options: AssignmentOptions = {},
): Assignment {
  const members = assignableMembers(state, options.leaving)
  const owners: (MemberName | null)[] = new Array(state.partitions)
  const lastOwners: (MemberName | null)[] = new Array(state.partitions)
  const excluded = new Set<PartitionId>()
  for (let partition = 0; partition < state.partitions; partition += 1) {
    const isGiven = options.given?.has(partition) === true
    const holder = isGiven ? null : holderOf(state, partition)
    owners[partition] = holder ?? options.chosen?.get(partition) ?? null
    lastOwners[partition] = holder === null && !isGiven ? lastOwnerOf(state, partition) : null
    if (!mayHaveOwner(state, partition)) excluded.add(partition)
  }
  const keeping = new Set<MemberName>()
  for (const member of state.members.values()) {
    if (state.cordons.has(member.member) && !options.leaving?.has(member.member)) {
      keeping.add(member.member)
    }
  }
  const order = orderOf(members.map(({ member }) => member))
  return assign({
    partitions: state.partitions,
    members,
    owners,
    keeping,
    lastOwners,
    cameFrom: (partition) => state.previousOwner(partition)?.member ?? null,
    excluded,
    order,
  })
}

/** Live, active, not cordoned, not being evicted, by name. */
export function assignableMembers(
  state: GroupState,
  leaving?: ReadonlySet<MemberName>,
): readonly AssignableMember[] {
  const members: AssignableMember[] = []
  for (const record of state.members.values()) {
    if (!mayReceive(state, record) || leaving?.has(record.member)) continue
    members.push({ member: record.member, weight: record.weight, capacity: record.capacity })
  }
  return members.sort((a, b) => (a.member < b.member ? -1 : 1))
}

export function mayReceive(state: GroupState, record: MemberRecord): boolean {
  return (
    record.state === 'active' &&
    !state.cordons.has(record.member) &&
    !state.evictions.has(record.member)
  )
}

/** False while it is disabled, or halted until the incarnation rises. */
export function mayHaveOwner(state: GroupState, partition: PartitionId): boolean {
  if (state.isDisabled(partition)) return false
  const haltedThrough = state.haltedThrough(partition)
  return haltedThrough === null || haltedThrough < (state.incarnation ?? 0)
}

/** Nobody who lives owns it, and somebody may. A session that is gone makes any phase vacant. */
export function isElectable(state: GroupState, partition: PartitionId): boolean {
  return state.liveOwner(partition) === null && mayHaveOwner(state, partition)
}

/** The target of a pending move while it lives, else the live owner. */
function holderOf(state: GroupState, partition: PartitionId): MemberName | null {
  const phase = state.phase(partition)
  if (phase === 'halted') return null
  if (phase === 'revoking') {
    const record = state.record(partition)?.record
    const to = record?.phase === 'revoking' ? record.move.to : null
    if (to !== null && state.members.has(to)) return to
  }
  return state.liveOwner(partition)?.member ?? null
}

function lastOwnerOf(state: GroupState, partition: PartitionId): MemberName | null {
  return state.lastOwner(partition)?.member ?? null
}
