/**
 * Deltas and snapshots of an ownership map, and how they are merged into one.
 *
 * A snapshot is everything at one revision R: it is right about each entry that the map does not know
 * at a newer revision, and a member that it lacks is gone. A delta is what changed, each entry with its
 * own revision; it holds *all* changes in (previous, revision], which is how a receiver knows what it
 * missed (map-follower.ts). Both may be merged in any order, any number of times.
 */
import type { PartitionId, SessionId } from './ids.ts'
import type { GoneMember, MapMember } from './map-members.ts'
import type { MapVersion } from './map-version.ts'
import type { MapEntry } from './ownership-map.ts'
import { OwnershipMap } from './ownership-map.ts'
import type { Owner } from './partition-record.ts'
import type { ServedGrant, ServingMessage } from './serving-wire.ts'

export type MapDelta = {
  /** Unique per life of a publishing process. */
  readonly publisher: string
  /** Milliseconds since the publisher's mirror of etcd was last known to be current. */
  readonly ageMs: number
  readonly version: MapVersion
  /** Revision of the publisher's delta before this one. */
  readonly previous: number
  /** P. */
  readonly partitions: number
  /** A large delta comes in parts 0 .. parts - 1, all of one version. */
  readonly part: number
  readonly parts: number
  readonly members: readonly MapMember[]
  readonly gone: readonly GoneMember[]
  readonly entries: readonly MapEntry[]
}

/** Columns hold one element per partition. */
export type MapSnapshot = {
  readonly publisher: string
  readonly version: MapVersion
  readonly hash: string
  readonly members: readonly (Owner & { readonly address: string; readonly zone: string })[]
  /** What `owner` counts: index + 1, 0 for none. */
  readonly owners: readonly Owner[]
  readonly owner: readonly number[]
  readonly incarnation: readonly number[]
  readonly generation: readonly number[]
  readonly phase: readonly number[]
  /** 1: the owner said that it serves. */
  readonly serving: readonly number[]
}

/** What a merge changed. */
export type MapChange = { readonly partitions: readonly PartitionId[]; readonly members: boolean }

export function mergeDelta(map: OwnershipMap, delta: MapDelta): MapChange {
  let members = false
  for (const gone of delta.gone) if (map.removeMember(gone)) members = true
  for (const member of delta.members) if (map.mergeMember(member)) members = true
  const partitions: PartitionId[] = []
  for (const entry of delta.entries) if (map.merge(entry)) partitions.push(entry.partition)
  return { partitions, members }
}

export function mergeSnapshot(map: OwnershipMap, snapshot: MapSnapshot): MapChange {
  const { revision } = snapshot.version
  const members = mergeMembers(map, snapshot)
  const partitions: PartitionId[] = []
  for (let partition = 0; partition < map.partitions; partition += 1) {
    if (map.revision(partition) > revision) continue
    const entry = snapshotEntry(snapshot, partition)
    const changed = map.put(entry)
    const heard = snapshot.serving[partition] === 1 && entry.generation > 0
    const served = heard && map.markServing(partition, entry.incarnation, entry.generation, true)
    if (changed || served) partitions.push(partition)
  }
  map.members.sweep(map.completeTo)
  return { partitions, members }
}

/** Notes what a member said; the partitions of which the map's answer may have changed. */
export function mergeServing(map: OwnershipMap, said: ServingMessage): readonly PartitionId[] {
  const changed: PartitionId[] = []
  const mark = (grant: ServedGrant, serving: boolean) => {
    const { partition, incarnation, generation } = grant
    if (map.markServing(partition, incarnation, generation, serving)) changed.push(partition)
  }
  for (const grant of said.serving) mark(grant, true)
  for (const grant of said.stopped) mark(grant, false)
  return changed
}

export function takeSnapshot(map: OwnershipMap, publisher: string): MapSnapshot {
  const owners: Owner[] = []
  const numbers = new Map<SessionId, number>()
  const columns = {
    owner: new Array<number>(map.partitions),
    incarnation: new Array<number>(map.partitions),
    generation: new Array<number>(map.partitions),
    phase: new Array<number>(map.partitions),
    serving: new Array<number>(map.partitions),
  }
  const number = (owner: Owner): number => {
    const known = numbers.get(owner.session)
    if (known !== undefined) return known
    owners.push({ member: owner.member, session: owner.session })
    numbers.set(owner.session, owners.length)
    return owners.length
  }
  const members = [...map.members.allLive()].map(({ member, session, address, zone }) => {
    number({ member, session })
    return { member, session, address, zone }
  })
  for (let partition = 0; partition < map.partitions; partition += 1) {
    const entry = map.entry(partition)
    columns.owner[partition] = entry.owner === null ? 0 : number(entry.owner)
    columns.incarnation[partition] = entry.incarnation
    columns.generation[partition] = entry.generation
    columns.phase[partition] = entry.phase
    columns.serving[partition] = map.isServing(partition) ? 1 : 0
  }
  return { publisher, version: map.version, hash: map.hash(), members, owners, ...columns }
}

/** A map that holds exactly the snapshot. */
export function mapOfSnapshot(snapshot: MapSnapshot): OwnershipMap {
  const map = new OwnershipMap(snapshot.version.incarnation, snapshot.owner.length)
  mergeSnapshot(map, snapshot)
  map.completeTo = snapshot.version.revision
  return map
}

function mergeMembers(map: OwnershipMap, snapshot: MapSnapshot): boolean {
  const { revision } = snapshot.version
  const sessions = new Set(snapshot.members.map((member) => member.session))
  let changed = false
  for (const slot of [...map.members.allLive()]) {
    if (sessions.has(slot.session) || slot.revision > revision) continue
    const { member, session } = slot
    if (map.removeMember({ member, session, revision })) changed = true
  }
  for (const member of snapshot.members) {
    if (map.putMember({ revision, ...member })) changed = true
  }
  return changed
}

function snapshotEntry(snapshot: MapSnapshot, partition: PartitionId): MapEntry {
  return {
    partition,
    incarnation: snapshot.incarnation[partition] as number,
    generation: snapshot.generation[partition] as number,
    phase: snapshot.phase[partition] as number,
    owner: snapshot.owners[(snapshot.owner[partition] as number) - 1] ?? null,
    revision: snapshot.version.revision,
  }
}
