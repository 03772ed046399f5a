/**
 * The ownership map: who owns each partition, as publishers and observers hold it. Columns of typed
 * arrays, about 45 bytes per partition, because a group may have 100,000 partitions and every process
 * keeps one. One mutable table; deterministic; no I/O.
 *
 * Each entry carries the revision up to which it is known to be right. Two sources fill a map:
 * - a publisher sets what its mirror of etcd holds (`put`);
 * - an observer merges what it hears (`merge`): the higher revision wins, in any order, and what is not
 *   newer than `completeTo` is old news.
 *
 * A map belongs to one incarnation of the group. Revisions of another incarnation may belong to another
 * history of etcd, so nothing is ever merged across incarnations: a new map takes the old one's place.
 *
 * Not promised: that the map is current. It never authorises work.
 */
import type { MemberName, PartitionId, SessionId } from './ids.ts'
import { MapHash, NO_LANES } from './map-hash.ts'
import type { GoneMember, MapMember } from './map-members.ts'
import { MapMembers } from './map-members.ts'
import type { MapVersion } from './map-version.ts'
import type { Owner } from './partition-record.ts'

/** Phases by their number on the wire. */
export const MAP_PHASES = ['vacant', 'owned', 'revoking', 'halted'] as const
export type MapPhase = (typeof MAP_PHASES)[number]

export type MapEntry = {
  readonly partition: PartitionId
  readonly incarnation: number
  readonly generation: number
  /** Index into {@link MAP_PHASES}. */
  readonly phase: number
  readonly owner: Owner | null
  readonly revision: number
}

/** Who owns a partition right now, as far as the map knows. */
export type OwnerView = {
  readonly partition: PartitionId
  readonly member: MemberName
  readonly session: SessionId
  /** Where callers reach the owner; empty when it serves nobody. */
  readonly address: string
  /** With `generation` the position of the owner's token. */
  readonly incarnation: number
  readonly generation: number
  /** The owner said that it serves the partition; a hint. */
  readonly serving: boolean
  readonly phase: MapPhase
}

/**
 * One partition in full; `owner` also when its session is gone: `live` false, no address any more, the
 * partition vacant in effect.
 */
export type MapPartitionView = {
  readonly partition: PartitionId
  readonly phase: MapPhase
  readonly incarnation: number
  readonly generation: number
  readonly owner:
    | (Owner & { readonly address: string; readonly zone: string; readonly live: boolean })
    | null
  readonly serving: boolean
}

export type MapCounts = {
  readonly partitions: number
  /** Partitions whose owner's session lives. */
  readonly owned: number
  readonly serving: number
  readonly members: number
}

export class OwnershipMap {
  readonly incarnation: number
  readonly partitions: number
  readonly members: MapMembers
  /** Everything up to this revision is in the map. */
  completeTo = 0
  /** The newest revision of anything in the map. */
  newestRevision = 0
  private readonly sums = new MapHash()
  private readonly incarnations: Float64Array
  private readonly generations: Float64Array
  private readonly revisions: Float64Array
  private readonly servingIncarnations: Float64Array
  private readonly servingGenerations: Float64Array
  /** Slot + 1, 0: none. */
  private readonly owners: Uint32Array
  private readonly phases: Uint8Array

  constructor(incarnation: number, partitions: number) {
    this.incarnation = incarnation
    this.partitions = partitions
    this.members = new MapMembers(this.sums)
    this.incarnations = new Float64Array(partitions)
    this.generations = new Float64Array(partitions)
    this.revisions = new Float64Array(partitions)
    this.servingIncarnations = new Float64Array(partitions)
    this.servingGenerations = new Float64Array(partitions)
    this.owners = new Uint32Array(partitions)
    this.phases = new Uint8Array(partitions)
  }

  get version(): MapVersion {
    return { incarnation: this.incarnation, revision: this.completeTo }
  }

  hash(): string {
    return this.sums.text()
  }

  /** Takes an entry that is newer than what is known. True when the partition's content changed. */
  merge(entry: MapEntry): boolean {
    const { partition, revision } = entry
    if (partition >= this.partitions || revision <= this.completeTo) return false
    if (revision <= (this.revisions[partition] as number)) return false
    return this.put(entry)
  }

  /** Sets an entry whatever is known. True when the partition's content changed. */
  put(entry: MapEntry): boolean {
    const { partition, incarnation, generation, phase, owner, revision } = entry
    this.revisions[partition] = revision
    if (revision > this.newestRevision) this.newestRevision = revision
    const slot = owner === null ? 0 : this.members.intern(owner) + 1
    const same =
      this.generations[partition] === generation &&
      this.incarnations[partition] === incarnation &&
      this.owners[partition] === slot &&
      this.phases[partition] === phase
    if (same) return false
    this.countIn(partition, -1)
    const before = this.owners[partition] as number
    if (before > 0) this.members.slot(before - 1).references -= 1
    if (slot > 0) this.members.slot(slot - 1).references += 1
    this.incarnations[partition] = incarnation
    this.generations[partition] = generation
    this.owners[partition] = slot
    this.phases[partition] = phase
    this.countIn(partition, 1)
    return true
  }

  mergeMember(member: MapMember): boolean {
    if (member.revision <= this.completeTo && !this.members.knows(member.session)) return false
    return this.putMember(member)
  }

  putMember(member: MapMember): boolean {
    if (member.revision > this.newestRevision) this.newestRevision = member.revision
    return this.members.put(member)
  }

  removeMember(gone: GoneMember): boolean {
    if (gone.revision > this.newestRevision) this.newestRevision = gone.revision
    return this.members.remove(gone)
  }

  revision(partition: PartitionId): number {
    return this.revisions[partition] as number
  }

  /** Notes what a member said that it serves; heard before or after the grant itself. */
  markServing(
    partition: PartitionId,
    incarnation: number,
    generation: number,
    serving: boolean,
  ): boolean {
    if (partition >= this.partitions) return false
    const heard = this.servingIncarnations[partition] as number
    const isNewer =
      incarnation > heard ||
      (incarnation === heard && generation > (this.servingGenerations[partition] as number))
    const isSame = incarnation === heard && generation === this.servingGenerations[partition]
    if (serving ? !isNewer : !isSame) return false
    this.servingIncarnations[partition] = serving ? incarnation : 0
    this.servingGenerations[partition] = serving ? generation : 0
    return true
  }

  /** Takes over what is known of serving from a map of as many partitions. */
  copyServing(before: OwnershipMap): void {
    this.servingIncarnations.set(before.servingIncarnations)
    this.servingGenerations.set(before.servingGenerations)
  }

  isServing(partition: PartitionId): boolean {
    return (
      this.owners[partition] !== 0 &&
      this.servingGenerations[partition] === this.generations[partition] &&
      this.servingIncarnations[partition] === this.incarnations[partition]
    )
  }

  /** The live owner, or null. Allocates nothing but the answer. */
  owner(partition: PartitionId): OwnerView | null {
    const index = this.owners[partition] as number
    if (index === 0) return null
    const slot = this.members.slot(index - 1)
    if (!slot.live) return null
    return {
      partition,
      member: slot.member,
      session: slot.session,
      address: slot.address,
      incarnation: this.incarnations[partition] as number,
      generation: this.generations[partition] as number,
      serving: this.isServing(partition),
      phase: MAP_PHASES[this.phases[partition] as number] as MapPhase,
    }
  }

  view(partition: PartitionId): MapPartitionView {
    const index = this.owners[partition] as number
    const slot = index === 0 ? null : this.members.slot(index - 1)
    return {
      partition,
      phase: MAP_PHASES[this.phases[partition] as number] as MapPhase,
      incarnation: this.incarnations[partition] as number,
      generation: this.generations[partition] as number,
      owner: slot && {
        member: slot.member,
        session: slot.session,
        address: slot.address,
        zone: slot.zone,
        live: slot.live,
      },
      serving: this.isServing(partition),
    }
  }

  entry(partition: PartitionId): MapEntry {
    const index = this.owners[partition] as number
    const slot = index === 0 ? null : this.members.slot(index - 1)
    return {
      partition,
      incarnation: this.incarnations[partition] as number,
      generation: this.generations[partition] as number,
      phase: this.phases[partition] as number,
      owner: slot && { member: slot.member, session: slot.session },
      revision: this.revisions[partition] as number,
    }
  }

  counts(): MapCounts {
    let owned = 0
    let serving = 0
    for (let partition = 0; partition < this.partitions; partition += 1) {
      const index = this.owners[partition] as number
      if (index === 0 || !this.members.slot(index - 1).live) continue
      owned += 1
      if (this.isServing(partition)) serving += 1
    }
    return { partitions: this.partitions, owned, serving, members: this.members.liveCount }
  }

  /** Adds to the hash what the partition counts, or takes it away. */
  private countIn(partition: PartitionId, sign: 1 | -1): void {
    const index = this.owners[partition] as number
    this.sums.countPartition(
      sign,
      partition,
      this.incarnations[partition] as number,
      this.generations[partition] as number,
      this.phases[partition] as number,
      index === 0 ? NO_LANES : this.members.slot(index - 1).ownerLanes,
    )
  }
}
