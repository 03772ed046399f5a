/** What an observer is given, tells and counts (runtime/observer.ts). */
import type { GroupName, PartitionId } from '../core/ids.ts'
import type { MapChange } from '../core/map-merge.ts'
import type { MapVersion } from '../core/map-version.ts'
import type { MapPartitionView, OwnerView } from '../core/ownership-map.ts'
import type { Owner } from '../core/partition-record.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Telemetry } from '../ports/telemetry.ts'

export type ObserverOptions = {
  readonly group: GroupName
  readonly broadcast: Broadcast
  readonly clock: Clock
  readonly random: Random
  readonly telemetry?: Telemetry
  /** Age from which `stale` is true. Default 5000 ms. */
  readonly staleAfterMs?: number
}

export type ObservedMember = Owner & { readonly address: string; readonly zone: string }

export type ObserverChange = MapChange & { readonly version: MapVersion }

export type ObserverCounters = {
  /** Times that a delta showed that one before it is missing. */
  readonly gaps: number
  /** Times that a snapshot ended an unsynced stretch, the first included. */
  readonly resyncs: number
  /** Requests sent, and snapshots that came and were used. */
  readonly requests: number
  readonly snapshots: number
  readonly deltas: number
  readonly digests: number
  /** Messages that were malformed or of another format version. */
  readonly refused: number
}

export interface Observer {
  readonly group: GroupName
  /** Resolves with the first map; rejects with TenureError `stopped` when closed before. */
  readonly ready: Promise<void>
  /** P; 0 before the first map. */
  readonly partitions: number
  /** Incarnation 0 before the first map. */
  readonly version: MapVersion
  /** True when the map was not known to be current within `staleAfterMs`. */
  readonly stale: boolean
  readonly counters: ObserverCounters
  /** `following`: in step; else the map may lack changes. */
  readonly status: 'offline' | 'waiting' | 'syncing' | 'following'
  /** Milliseconds since the map was last known to be current; Infinity before the first. */
  ageMs(): number
  /** The live owner of the key's partition; null when there is none, or no map yet. */
  owner(key: string): OwnerView | null
  /** @throws TenureError `unknown-partition` outside 0 .. P-1. */
  partition(partition: PartitionId): MapPartitionView
  /** Live members, in order of their names. */
  members(): readonly ObservedMember[]
  /** The hash of the map (core/map-hash.ts); empty before the first map. */
  hash(): string
  onChange(listener: (change: ObserverChange) => void): () => void
  close(): void
}

export const NO_COUNTS: ObserverCounters = {
  gaps: 0,
  resyncs: 0,
  requests: 0,
  snapshots: 0,
  deltas: 0,
  digests: 0,
  refused: 0,
}
