/**
 * The members that an ownership map names, one slot per session: live ones, and gone ones as long as a
 * partition names them or their going is news. Partitions hold slot numbers, so a name is stored once.
 *
 * I1  a session that went never lives again: sessions are random and not reused.
 * I2  at most one session of a member name lives.
 */
import type { MemberName, SessionId } from './ids.ts'
import type { Lanes, MapHash } from './map-hash.ts'
import { memberLanes, ownerLanes } from './map-hash.ts'
import type { Owner } from './partition-record.ts'

/** A live member as the map knows it. `revision`: the map holds nothing newer of it. */
export type MapMember = Owner & {
  readonly address: string
  readonly zone: string
  readonly revision: number
}

/** A session that ended. */
export type GoneMember = Owner & { readonly revision: number }

export type MemberSlot = {
  readonly member: MemberName
  readonly session: SessionId
  readonly ownerLanes: Lanes
  address: string
  zone: string
  live: boolean
  revision: number
  /** Partitions that name this slot. */
  references: number
  /** What a live member adds to the map's hash. */
  lanes: Lanes | null
}

/** Gone sessions kept before the table is swept. */
const GONE_SLOTS_MAX = 1024

export class MapMembers {
  private readonly hash: MapHash
  private readonly slots: (MemberSlot | null)[] = []
  private readonly free: number[] = []
  private readonly bySession = new Map<SessionId, number>()
  private readonly liveByName = new Map<MemberName, number>()

  constructor(hash: MapHash) {
    this.hash = hash
  }

  get liveCount(): number {
    return this.liveByName.size
  }

  /** Slots in use. */
  get size(): number {
    return this.bySession.size
  }

  slot(index: number): MemberSlot {
    return this.slots[index] as MemberSlot
  }

  /** The live member of that name. */
  live(member: MemberName): MemberSlot | null {
    const index = this.liveByName.get(member)
    return index === undefined ? null : this.slot(index)
  }

  *allLive(): Iterable<MemberSlot> {
    for (const index of this.liveByName.values()) yield this.slot(index)
  }

  /** The slot of a session, made when it is new: gone until said to live. */
  intern(owner: Owner): number {
    const known = this.bySession.get(owner.session)
    if (known !== undefined) return known
    const index = this.free.pop() ?? this.slots.length
    this.slots[index] = {
      member: owner.member,
      session: owner.session,
      ownerLanes: ownerLanes(owner.member, owner.session),
      address: '',
      zone: '',
      live: false,
      revision: 0,
      references: 0,
      lanes: null,
    }
    this.bySession.set(owner.session, index)
    return index
  }

  knows(session: SessionId): boolean {
    return this.bySession.has(session)
  }

  /** True when something changed. An older statement about the session changes nothing. */
  put(member: MapMember): boolean {
    const index = this.intern(member)
    const slot = this.slot(index)
    const ended = !slot.live && slot.revision > 0
    if (ended || slot.revision >= member.revision) return false
    slot.revision = member.revision
    const predecessor = this.liveByName.get(member.member)
    if (predecessor !== undefined && predecessor !== index) {
      if (this.slot(predecessor).revision > member.revision) return false
      this.end(predecessor, member.revision)
    }
    const lanes = memberLanes(member.member, member.session, member.address, member.zone)
    if (slot.lanes !== null) this.hash.removeMember(slot.lanes)
    this.hash.addMember(lanes)
    const same = slot.live && slot.lanes?.first === lanes.first
    Object.assign(slot, { lanes, live: true, address: member.address, zone: member.zone })
    this.liveByName.set(member.member, index)
    return !same
  }

  /** True when it lived. */
  remove(gone: GoneMember): boolean {
    const index = this.intern(gone)
    const slot = this.slot(index)
    if (slot.live && slot.revision > gone.revision) return false
    return this.end(index, gone.revision)
  }

  /** Forgets gone sessions that no partition names and whose going is no news any more. */
  sweep(completeTo: number): void {
    if (this.bySession.size - this.liveByName.size <= GONE_SLOTS_MAX) return
    for (const [session, index] of this.bySession) {
      const slot = this.slot(index)
      if (slot.live || slot.references > 0 || slot.revision > completeTo) continue
      this.bySession.delete(session)
      this.slots[index] = null
      this.free.push(index)
    }
  }

  private end(index: number, revision: number): boolean {
    const slot = this.slot(index)
    const lived = slot.live
    slot.revision = Math.max(slot.revision, revision)
    Object.assign(slot, { live: false, address: '', zone: '' })
    if (slot.lanes !== null) this.hash.removeMember(slot.lanes)
    slot.lanes = null
    if (this.liveByName.get(slot.member) === index) this.liveByName.delete(slot.member)
    return lived
  }
}
