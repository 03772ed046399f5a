/** The ownership map's entries as a publisher takes them from its copy of etcd. */
import type { GroupState } from './group-state.ts'
import type { PartitionId } from './ids.ts'
import type { MapMember } from './map-members.ts'
import type { MemberRecord } from './member-record.ts'
import type { MapEntry, OwnershipMap } from './ownership-map.ts'
import { MAP_PHASES } from './ownership-map.ts'

const NEVER = { incarnation: 0, generation: 0 }

/** Fills an empty map with everything that the state holds. */
export function fillMap(map: OwnershipMap, state: GroupState): void {
  for (const record of state.members.values()) map.putMember(memberOfState(state, record))
  for (let partition = 0; partition < map.partitions; partition += 1) {
    if (state.position(partition) !== null) map.put(entryOfRecord(state, partition))
  }
  map.completeTo = state.revision
}

/** The entry of a partition; one that was never granted is at generation 0. */
export function entryOfRecord(state: GroupState, partition: PartitionId): MapEntry {
  const phase = state.phase(partition)
  const { incarnation, generation } = state.position(partition) ?? NEVER
  return {
    partition,
    incarnation,
    generation,
    phase: phase === null ? 0 : MAP_PHASES.indexOf(phase),
    owner: state.owner(partition),
    revision: state.recordRevision(partition) || state.revision,
  }
}

export function memberOfState(state: GroupState, record: MemberRecord): MapMember {
  const { member, session, address, zone } = record
  return { member, session, address, zone, revision: state.modRevision(state.keys.member(member)) }
}
