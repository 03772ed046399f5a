/**
 * An observer: follows the ownership map of one group over the broadcast alone and answers from memory.
 * It drives core/map-follower.ts and holds the map that the machine speaks of; a map of a newer
 * incarnation is staged beside it until a snapshot completes it.
 *
 * Promised: the version never goes back; a gap means a resync; how old the map is shows in `ageMs`.
 * Not promised: that an answer is current. It tells where to send work, never that work may be done.
 */
import type { GroupName, PartitionId } from '../core/ids.ts'
import { stepFollower } from '../core/map-follower.ts'
import type { FollowerAction, FollowerEvent, FollowerState } from '../core/map-follower-state.ts'
import { createFollower } from '../core/map-follower-state.ts'
import type { MapChange, MapDelta, MapSnapshot } from '../core/map-merge.ts'
import { mergeDelta, mergeServing, mergeSnapshot } from '../core/map-merge.ts'
import type { MapVersion } from '../core/map-version.ts'
import type { MapDigest } from '../core/map-wire.ts'
import {
  decodeDelta,
  decodeDigest,
  decodeSnapshot,
  mapSubjects,
  SNAPSHOT_REQUEST,
} from '../core/map-wire.ts'
import type { MapPartitionView, OwnerView } from '../core/ownership-map.ts'
import { OwnershipMap } from '../core/ownership-map.ts'
import { partitionOf } from '../core/partition-key.ts'
import { decodeServing } from '../core/serving-wire.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Message, Subscription } from '../ports/broadcast.ts'
import type { Timer } from '../ports/clock.ts'
import { createDeferred } from './deferred.ts'
import { decodeFrame, encodeFrame, ReplyAssembler } from './map-frames.ts'
import type {
  ObservedMember,
  Observer,
  ObserverChange,
  ObserverCounters,
  ObserverOptions,
} from './observer-types.ts'
import { NO_COUNTS } from './observer-types.ts'

type Counts = { -readonly [Name in keyof ObserverCounters]: number }

const STALE_AFTER_MS = 5000

export function createObserver(options: ObserverOptions): Observer {
  const observer = new MapObserver(options)
  observer.start()
  return observer
}

class MapObserver implements Observer {
  readonly group: GroupName
  private readonly options: ObserverOptions
  private readonly subjects
  private readonly listeners = new Set<(change: ObserverChange) => void>()
  private readonly endings: Subscription[] = []
  private readonly first = createDeferred<void>()
  private readonly counts: Counts = { ...NO_COUNTS }
  private follower: FollowerState
  private map: OwnershipMap | null = null
  /** Deltas of a newer incarnation gather here. */
  private staged: OwnershipMap | null = null
  private timer: Timer | null = null
  private timerAtMs = 0
  private closed = false

  constructor(options: ObserverOptions) {
    this.options = options
    this.group = options.group
    this.subjects = mapSubjects(options.group)
    this.follower = createFollower(Math.floor(options.random.fraction() * 2 ** 32))
    this.first.promise.catch(() => undefined)
  }

  start(): void {
    const { broadcast } = this.options
    const { delta, digest, serving } = this.subjects
    this.endings.push(
      broadcast.subscribe(delta, (message) => this.hearDelta(message)),
      broadcast.subscribe(digest, (message) => this.hearDigest(message)),
      broadcast.subscribe(serving, (message) => this.hearServing(message)),
      broadcast.onStatus((status) =>
        this.take({ type: status === 'connected' ? 'connected' : 'disconnected' }),
      ),
    )
    if (broadcast.status() === 'connected') this.take({ type: 'connected' })
  }

  get ready(): Promise<void> {
    return this.first.promise
  }

  get partitions(): number {
    return this.map?.partitions ?? 0
  }

  get version(): MapVersion {
    return this.follower.version
  }

  get stale(): boolean {
    return this.ageMs() > (this.options.staleAfterMs ?? STALE_AFTER_MS)
  }

  get counters(): ObserverCounters {
    return { ...this.counts }
  }

  get status(): Observer['status'] {
    return this.follower.phase.status
  }

  ageMs(): number {
    const { confirmedAtMs } = this.follower
    if (confirmedAtMs === null || this.map === null) return Number.POSITIVE_INFINITY
    return Math.max(0, this.options.clock.monotonicMs() - confirmedAtMs)
  }

  owner(key: string): OwnerView | null {
    const { map } = this
    return map === null ? null : map.owner(partitionOf(key, map.partitions))
  }

  partition(partition: PartitionId): MapPartitionView {
    const { map } = this
    if (
      map === null ||
      !(Number.isInteger(partition) && partition >= 0 && partition < map.partitions)
    ) {
      throw createTenureError('unknown-partition', `partition ${partition} is not in the map`)
    }
    return map.view(partition)
  }

  members(): readonly ObservedMember[] {
    const live = [...(this.map?.members.allLive() ?? [])]
    return live
      .map(({ member, session, address, zone }) => ({ member, session, address, zone }))
      .sort((a, b) => (a.member < b.member ? -1 : 1))
  }

  hash(): string {
    return this.map?.hash() ?? ''
  }

  onChange(listener: (change: ObserverChange) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  close(): void {
    this.closed = true
    this.timer?.cancel()
    for (const ending of this.endings) ending.close()
    this.listeners.clear()
    this.first.reject(createTenureError('stopped', 'the observer was closed before it had a map'))
  }

  private hearDelta(message: Message): void {
    const delta = this.decode(message, decodeDelta)
    if (delta === null || this.isForeign(delta)) return
    this.counts.deltas += 1
    const { publisher, version, previous, part, parts, ageMs } = delta
    this.take({ type: 'delta', publisher, version, previous, part, parts, ageMs }, { delta })
  }

  private hearDigest(message: Message): void {
    const digest: MapDigest | null = this.decode(message, decodeDigest)
    if (digest === null) return
    this.counts.digests += 1
    const { version, hash, ageMs } = digest
    this.take({ type: 'digest', version, hash, ageMs, ...this.facts() })
  }

  private hearServing(message: Message): void {
    const said = this.decode(message, decodeServing)
    if (said === null) return
    if (this.staged !== null) mergeServing(this.staged, said)
    if (this.map !== null) this.tell({ partitions: mergeServing(this.map, said), members: false })
  }

  private async request(request: number, timeoutMs: number): Promise<void> {
    this.counts.requests += 1
    const replies = new ReplyAssembler()
    const complete = await this.options.broadcast.request(
      this.subjects.get,
      encodeFrame(SNAPSHOT_REQUEST),
      { timeoutMs },
      (reply) => replies.add(reply),
    )
    if (this.closed) return
    const reply = complete ? replies.complete() : null
    const snapshot = reply === null ? null : decodeSnapshot(reply.text)
    if (reply === null || snapshot === null) return this.take({ type: 'snapshot-failed', request })
    const { version, hash } = snapshot
    const { ageMs } = reply
    this.take({ type: 'snapshot', request, version, hash, ageMs, ...this.facts() }, { snapshot })
  }

  /** One event through the machine, its actions on the map, and the next wake. */
  private take(
    event: FollowerEvent,
    with_: { delta?: MapDelta; snapshot?: MapSnapshot } = {},
  ): void {
    if (this.closed) return
    const { clock } = this.options
    const { state, actions, wakeAtMs } = stepFollower(this.follower, event, clock.monotonicMs())
    this.follower = state
    let change: MapChange = { partitions: [], members: false }
    for (const action of actions) change = this.perform(action, with_) ?? change
    if (this.map?.incarnation === state.version.incarnation) {
      this.map.completeTo = state.version.revision
    }
    this.wakeAt(wakeAtMs)
    this.tell(change)
  }

  /** A wake that is set stays while it comes soon enough, and is set anew then: each delta puts it off. */
  private wakeAt(atMs: number | null): void {
    if (atMs !== null && this.timer !== null && this.timerAtMs <= atMs) return
    this.timer?.cancel()
    this.timer = null
    if (atMs === null) return
    const { clock } = this.options
    this.timerAtMs = atMs
    this.timer = clock.schedule(Math.max(0, atMs - clock.monotonicMs()), () => {
      this.timer = null
      this.take({ type: 'woke' })
    })
  }

  private perform(
    action: FollowerAction,
    { delta, snapshot }: { delta?: MapDelta; snapshot?: MapSnapshot },
  ): MapChange | null {
    const { group, telemetry } = this.options
    switch (action.type) {
      case 'merge-delta':
        return this.map && delta ? mergeDelta(this.map, delta) : null
      case 'stage-delta':
        if (delta !== undefined) this.stage(delta)
        return null
      case 'merge-snapshot':
        this.counts.snapshots += 1
        return this.map && snapshot ? mergeSnapshot(this.map, snapshot) : null
      case 'replace-map':
        this.counts.snapshots += 1
        return snapshot ? this.replaceMap(snapshot) : null
      case 'request-snapshot':
        void this.request(action.request, action.timeoutMs)
        return null
      case 'report-gap': {
        this.counts.gaps += 1
        const { have, got } = action
        telemetry?.record({ type: 'map-gap', group, have, got })
        return null
      }
      case 'report-resynced': {
        this.counts.resyncs += 1
        const { revision } = this.follower.version
        telemetry?.record({ type: 'map-resynced', group, revision, tookMs: action.tookMs })
        return null
      }
      default:
        return action satisfies never
    }
  }

  private stage(delta: MapDelta): void {
    const { incarnation } = delta.version
    if (this.staged === null || this.staged.incarnation < incarnation) {
      this.staged = new OwnershipMap(incarnation, delta.partitions)
    }
    if (this.staged.incarnation === incarnation) mergeDelta(this.staged, delta)
  }

  private replaceMap(snapshot: MapSnapshot): MapChange {
    const { incarnation } = snapshot.version
    const partitions = snapshot.owner.length
    const { staged, map: before } = this
    const fits = staged?.incarnation === incarnation && staged.partitions === partitions
    const map = fits ? staged : new OwnershipMap(incarnation, partitions)
    if (before?.partitions === partitions && !fits) map.copyServing(before)
    mergeSnapshot(map, snapshot)
    this.map = map
    this.staged = null
    this.first.resolve()
    return { partitions: Array.from({ length: partitions }, (_, index) => index), members: true }
  }

  /** P is part of a group's identity: another one in the same incarnation is somebody else's. */
  private isForeign(delta: MapDelta): boolean {
    const { map } = this
    return map?.incarnation === delta.version.incarnation && map.partitions !== delta.partitions
  }

  private facts(): { readonly mapHash: string | null; readonly mapNewest: number } {
    return { mapHash: this.map?.hash() ?? null, mapNewest: this.map?.newestRevision ?? 0 }
  }

  private decode<T>(message: Message, decode: (text: string) => T | null): T | null {
    const text = decodeFrame(message.data)
    const body = text === null ? null : decode(text)
    if (body === null) this.counts.refused += 1
    return body
  }

  private tell(change: MapChange): void {
    if (change.partitions.length === 0 && !change.members) return
    for (const listener of [...this.listeners]) listener({ version: this.version, ...change })
  }
}
