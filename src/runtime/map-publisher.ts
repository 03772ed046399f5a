/**
 * Publishes the ownership map of one group from this process's mirror of etcd.
 *
 * Every `serve` process keeps the map and answers requests for snapshots, as one of a queue group. Only
 * the rebalancer's process (`setLeader(true)`) publishes deltas and digests; two that both believe to be
 * it for a while do no harm, for receivers merge by revision.
 *
 * A delta holds all changes after the delta before it, whether that one was sent or not: so what is lost
 * while NATS is down shows at the receivers as a gap, and nothing is kept here for later. Changes of one
 * turn of the event loop travel in one delta, and while many partitions move, those of a longer time
 * (`core/gathering.ts`): by so much the map and its deltas lag behind the mirror then. What the mirror learned ahead of its watch is sent at
 * once, and again in the delta that covers its revision, since only that one counts.
 *
 * What members say that they serve is heard here too, so that snapshots can tell it.
 */
import { gatherMs } from '../core/gathering.ts'
import type { GroupChange, GroupState } from '../core/group-state.ts'
import type { GroupName, PartitionId } from '../core/ids.ts'
import type { GoneMember, MapMember } from '../core/map-members.ts'
import { mergeServing, takeSnapshot } from '../core/map-merge.ts'
import { entryOfRecord, fillMap, memberOfState } from '../core/map-of-state.ts'
import { encodeDigest, encodeSnapshot, MAP_QUEUE, mapSubjects } from '../core/map-wire.ts'
import type { MapEntry } from '../core/ownership-map.ts'
import { OwnershipMap } from '../core/ownership-map.ts'
import { decodeServing } from '../core/serving-wire.ts'
import type { Broadcast, Message } from '../ports/broadcast.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { cutDelta, cutReplies, decodeFrame, deflateFrame, encodeFrame } from './map-frames.ts'

export type MapPublisherOptions = {
  readonly group: GroupName
  readonly broadcast: Broadcast
  readonly clock: Clock
  readonly state: GroupState
  readonly telemetry: Telemetry
  /** Unique per life of this process. */
  readonly publisherId: string
  /** Milliseconds since the state was last known to be current. Default: always current. */
  readonly ageMs?: () => number
}

export interface MapPublisher {
  /** After each batch of the mirror; the state includes it already. */
  onChange(change: GroupChange): void
  setLeader(isLeader: boolean): void
  /** The map as published, serving included; null while the group is unknown. Read only. */
  map(): OwnershipMap | null
  close(): void
}

const DIGEST_INTERVAL_MS = 1000
/** Hints alone renew the kept snapshot no sooner than this per partition: a second for 100,000. */
const HINTS_RENEW_MS_PER_PARTITION = 0.01

export function createMapPublisher(options: MapPublisherOptions): MapPublisher {
  const publisher = new Publisher(options)
  publisher.start()
  return publisher
}

type Kept = {
  readonly incarnation: number
  readonly revision: number
  readonly hash: string
  readonly hints: number
  readonly atMs: number
  readonly data: Uint8Array
}

class Publisher implements MapPublisher {
  private readonly options: MapPublisherOptions
  private readonly subjects
  private current: OwnershipMap | null = null
  private isLeader = false
  /** Changed since the last delta. */
  private touched = new Set<PartitionId>()
  private membersTouched = false
  private flushing = false
  private gathering: Timer | null = null
  /** Revision that the last delta covered. */
  private previous = 0
  private digestTimer: Timer | null = null
  private kept: Kept | null = null
  private hints = 0
  private closed = false
  private readonly endings: { close(): void }[] = []

  constructor(options: MapPublisherOptions) {
    this.options = options
    this.subjects = mapSubjects(options.group)
  }

  start(): void {
    const { broadcast } = this.options
    this.rebuild()
    const answer = (message: Message) => this.answer(message)
    this.endings.push(
      broadcast.subscribe(this.subjects.get, answer, { queue: MAP_QUEUE }),
      broadcast.subscribe(this.subjects.serving, (message) => this.hear(message)),
      broadcast.onStatus((status) => {
        if (status === 'connected' && this.isLeader) this.digest()
      }),
    )
  }

  map(): OwnershipMap | null {
    return this.current
  }

  onChange(change: GroupChange): void {
    for (const partition of change.partitions) this.touched.add(partition)
    if (change.members) this.membersTouched = true
    const { clock, state } = this.options
    const delayMs = gatherMs(state.revoking)
    if (delayMs > 0) {
      this.gathering ??= clock.schedule(delayMs, () => this.flush())
    } else if (!this.flushing) {
      this.flushing = true
      queueMicrotask(() => this.flush())
    }
  }

  setLeader(isLeader: boolean): void {
    if (this.isLeader === isLeader) return
    this.isLeader = isLeader
    this.digestTimer?.cancel()
    this.digestTimer = null
    if (isLeader) this.digest()
  }

  close(): void {
    this.closed = true
    this.digestTimer?.cancel()
    this.gathering?.cancel()
    for (const ending of this.endings) ending.close()
  }

  /** Takes the mirror's changes into the map and, as leader, publishes them. */
  private flush(): void {
    this.flushing = false
    this.gathering?.cancel()
    this.gathering = null
    if (this.closed) return
    const { state } = this.options
    const map = this.current
    const isSame =
      map !== null &&
      map.incarnation === state.incarnation &&
      map.partitions === state.partitions &&
      map.completeTo <= state.revision
    if (!isSame) {
      this.rebuild()
      if (this.isLeader) this.publishDigest()
      return
    }
    if (this.touched.size === 0 && !this.membersTouched) return
    const entries: MapEntry[] = []
    for (const partition of this.touched) {
      if (partition >= map.partitions) continue
      const entry = entryOfRecord(state, partition)
      map.put(entry)
      entries.push(entry)
    }
    const { members, gone } = this.membersTouched ? this.takeMembers(map) : NO_MEMBERS
    map.completeTo = state.revision
    const previous = this.previous
    this.previous = state.revision
    this.keepAhead(entries, members)
    map.members.sweep(state.revision)
    if (this.isLeader) this.publish(map, previous, members, gone, entries)
  }

  private rebuild(): void {
    const { state } = this.options
    this.touched.clear()
    this.membersTouched = false
    this.kept = null
    const before = this.current
    this.current = null
    if (state.incarnation === null || state.partitions === 0) return
    const map = new OwnershipMap(state.incarnation, state.partitions)
    fillMap(map, state)
    if (before?.partitions === map.partitions) map.copyServing(before)
    this.current = map
    this.previous = state.revision
  }

  /** Members that joined, changed or went since the last delta. */
  private takeMembers(map: OwnershipMap): { members: MapMember[]; gone: GoneMember[] } {
    const { state } = this.options
    const gone: GoneMember[] = []
    for (const { member, session } of [...map.members.allLive()]) {
      if (state.members.get(member)?.session === session) continue
      const ended = { member, session, revision: state.revision }
      map.removeMember(ended)
      gone.push(ended)
    }
    const members: MapMember[] = []
    for (const record of state.members.values()) {
      const member = memberOfState(state, record)
      map.putMember(member)
      if (member.revision > this.previous) members.push(member)
    }
    return { members, gone }
  }

  /** What is newer than the revision that the delta covers goes into the next one too. */
  private keepAhead(entries: readonly MapEntry[], members: readonly MapMember[]): void {
    const { revision } = this.options.state
    this.touched.clear()
    for (const entry of entries) if (entry.revision > revision) this.touched.add(entry.partition)
    this.membersTouched = members.some((member) => member.revision > revision)
  }

  private publish(
    map: OwnershipMap,
    previous: number,
    members: readonly MapMember[],
    gone: readonly GoneMember[],
    entries: readonly MapEntry[],
  ): void {
    const { broadcast, group, telemetry, publisherId } = this.options
    const head = {
      publisher: publisherId,
      ageMs: this.ageMs(),
      version: map.version,
      previous,
      partitions: map.partitions,
    }
    const frames = cutDelta(head, members, gone, entries, broadcast.maxPayloadBytes())
    let bytes = 0
    for (const frame of frames) {
      if (!broadcast.publish(this.subjects.delta, frame)) return
      bytes += frame.length
    }
    const { revision } = map.version
    telemetry.record({ type: 'map-published', group, revision, entries: entries.length, bytes })
  }

  private digest(): void {
    this.digestTimer?.cancel()
    this.digestTimer = this.options.clock.schedule(DIGEST_INTERVAL_MS, () => this.digest())
    this.flush()
    this.publishDigest()
  }

  private publishDigest(): void {
    const { broadcast, state, publisherId } = this.options
    const map = this.current
    if (map === null || broadcast.status() !== 'connected') return
    if (this.touched.size === 0 && !this.membersTouched) map.completeTo = state.revision
    const { version } = map
    const counts = map.counts()
    const hash = map.hash()
    const text = encodeDigest({
      publisher: publisherId,
      ageMs: this.ageMs(),
      version,
      hash,
      counts,
    })
    broadcast.publish(this.subjects.digest, encodeFrame(text))
  }

  private answer(message: Message): void {
    this.flush()
    const map = this.current
    // Another of the queue group may know the group; the asker tries again.
    if (map === null) return
    const { broadcast } = this.options
    const data = this.snapshot(map)
    for (const reply of cutReplies(data, this.ageMs(), broadcast.maxPayloadBytes())) {
      message.respond(reply)
    }
  }

  private snapshot(map: OwnershipMap): Uint8Array {
    const nowMs = this.options.clock.monotonicMs()
    const hash = map.hash()
    const { kept, hints } = this
    const isCurrent =
      kept !== null &&
      kept.incarnation === map.incarnation &&
      kept.revision === map.completeTo &&
      kept.hash === hash &&
      (kept.hints === hints || nowMs - kept.atMs < map.partitions * HINTS_RENEW_MS_PER_PARTITION)
    if (isCurrent) return kept.data
    const data = deflateFrame(encodeSnapshot(takeSnapshot(map, this.options.publisherId)))
    const { incarnation, revision } = map.version
    this.kept = { incarnation, revision, hash, hints, atMs: nowMs, data }
    return data
  }

  private hear(message: Message): void {
    const text = decodeFrame(message.data)
    const said = text === null ? null : decodeServing(text)
    const map = this.current
    if (said !== null && map !== null) this.hints += mergeServing(map, said).length
  }

  private ageMs(): number {
    return Math.max(0, Math.round(this.options.ageMs?.() ?? 0))
  }
}

const NO_MEMBERS = { members: [], gone: [] } as const
