/**
 * The last changes of a group's map, for event streams that resume where they broke off.
 *
 * Versions of events strictly increase, and at each one the map is complete: who has seen an event needs
 * only those after it. Replies run ahead of the watch, so what was learnt from one is held back until the
 * watch has come as far. After the store went back, nothing is told until the map is beyond what was shown
 * before (S8); who resumes then starts anew.
 */
import type { GroupChange, GroupState } from '../core/group-state.ts'
import type { MemberName, PartitionId, SessionId } from '../core/ids.ts'
import { BEFORE_ANY_VERSION, compareVersions, laterOf } from '../core/map-version.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { MapEvent, MapVersion, PartitionView } from '../ports/group-access.ts'
import type { Mirror } from './mirror.ts'

export const EVENTS_KEPT_MAX = 1000
/** Partitions in all kept events together; one event may hold all of them. */
const PARTITIONS_KEPT_MAX = 50_000
/** How often it is looked whether the watch has caught up with a reply. */
const CATCH_UP_MS = 50

export class GroupHistory {
  private readonly state: GroupState
  private readonly show: (partition: PartitionId) => PartitionView
  private readonly listeners = new Set<(event: MapEvent) => void>()
  private readonly unsubscribe: () => void
  private readonly clock: Clock
  private timer: Timer | null = null
  /** Changed since the last event. */
  private pending = new Set<PartitionId>()
  private isPending = false
  /** The revision at which the map is complete again. */
  private completeAt = 0
  private events: MapEvent[] = []
  private kept = 0
  /** Everything after this version is kept. */
  private floor: MapVersion
  private shown: MapVersion = BEFORE_ANY_VERSION
  /** Of the last event. */
  private told: MapVersion = BEFORE_ANY_VERSION
  private sessions = new Map<MemberName, SessionId>()
  private disabled = new Set<PartitionId>()
  private groupDisabled = false
  /** The store went back: until the map is beyond what was shown before, versions say nothing. */
  private rewound = false

  constructor(mirror: Mirror, clock: Clock, show: (partition: PartitionId) => PartitionView) {
    this.clock = clock
    this.state = mirror.state
    this.show = show
    this.floor = this.version()
    this.noteLiveness()
    this.noteDisabled()
    this.unsubscribe = mirror.subscribe({
      changed: (change) => this.changed(change),
      rewound: () => {
        this.rewound = true
        this.told = this.version()
        this.forget()
      },
    })
  }

  close(): void {
    this.unsubscribe()
    this.timer?.cancel()
    this.listeners.clear()
  }

  /** Never goes back (S8), also when the store does. */
  version(): MapVersion {
    const { incarnation, revision } = this.state
    this.shown = laterOf(this.shown, { incarnation: incarnation ?? 0, revision })
    return this.shown
  }

  subscribe(listener: (event: MapEvent) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  since(version: MapVersion): readonly MapEvent[] | null {
    if (this.rewound || compareVersions(version, this.floor) < 0) return null
    return this.events.filter((event) => compareVersions(event.version, version) > 0)
  }

  private changed(change: GroupChange): void {
    this.isPending = true
    for (const partition of change.partitions) {
      this.pending.add(partition)
      const revision = this.state.modRevision(this.state.keys.partition(partition))
      if (revision > this.completeAt) this.completeAt = revision
    }
    if (change.members) this.addOwnedByChanged(this.pending)
    if (change.settings) this.addDisabledChanged(this.pending)
    this.tell()
  }

  private tell(): void {
    this.timer?.cancel()
    this.timer = null
    if (!this.isPending) return
    const { revision, partitions } = this.state
    const version = this.version()
    if (revision < this.completeAt || compareVersions(version, this.told) <= 0) {
      this.timer = this.clock.schedule(CATCH_UP_MS, () => this.tell())
      return
    }
    if (this.rewound) this.floor = version
    this.rewound = false
    this.told = version
    const known = [...this.pending].filter((partition) => partition < partitions)
    this.pending = new Set()
    this.isPending = false
    const event = { version, partitions: known.sort((a, b) => a - b).map(this.show) }
    this.keep(event)
    for (const listener of this.listeners) listener(event)
  }

  private keep(event: MapEvent): void {
    this.events.push(event)
    this.kept += event.partitions.length
    while (this.events.length > EVENTS_KEPT_MAX || this.kept > PARTITIONS_KEPT_MAX) {
      const oldest = this.events.shift()
      if (oldest === undefined) return
      this.kept -= oldest.partitions.length
      this.floor = oldest.version
    }
  }

  private forget(): void {
    this.events = []
    this.kept = 0
    this.completeAt = 0
  }

  /** A session that came or went changes what is shown of the partitions that name it. */
  private addOwnedByChanged(partitions: Set<PartitionId>): void {
    const before = this.sessions
    this.noteLiveness()
    const differing = new Set<MemberName>()
    for (const [member, session] of before) {
      if (this.sessions.get(member) !== session) differing.add(member)
    }
    for (const member of this.sessions.keys()) if (!before.has(member)) differing.add(member)
    if (differing.size === 0) return
    for (let partition = 0; partition < this.state.partitions; partition += 1) {
      const owner = this.state.owner(partition)
      if (owner !== null && differing.has(owner.member)) partitions.add(partition)
    }
  }

  private addDisabledChanged(partitions: Set<PartitionId>): void {
    const { disabled, groupDisabled } = this
    this.noteDisabled()
    for (const partition of disabled) if (!this.disabled.has(partition)) partitions.add(partition)
    for (const partition of this.disabled) if (!disabled.has(partition)) partitions.add(partition)
    if (groupDisabled === this.groupDisabled) return
    for (let partition = 0; partition < this.state.partitions; partition += 1) {
      partitions.add(partition)
    }
  }

  private noteLiveness(): void {
    this.sessions = new Map(
      [...this.state.members.values()].map(({ member, session }) => [member, session]),
    )
  }

  private noteDisabled(): void {
    this.disabled = new Set(this.state.disabledPartitions.keys())
    this.groupDisabled = this.state.disabledGroup !== null
  }
}
