/**
 * A group as operators and callers see it: read from the mirror's memory, with the age of what is read.
 * Nothing here asks the store, so it answers without quorum too; nothing here authorises work.
 *
 * A partition whose owner's session is gone is shown vacant, whatever its record's phase: its last
 * grant then stands under `previous`.
 */
import { explainPartition } from '../core/explain.ts'
import { assignGroup, mayReceive } from '../core/group-assignment.ts'
import type { GroupConfig } from '../core/group-config.ts'
import type { GroupState } from '../core/group-state.ts'
import type { GroupName, MemberName, PartitionId } from '../core/ids.ts'
import type { RebalanceRecord } from '../core/operator-records.ts'
import { partitionOf } from '../core/partition-key.ts'
import type { PartitionRecord, PreviousOwner } from '../core/partition-record.ts'
import { recordOwner } from '../core/partition-record.ts'
import type { PreferenceOrderFactory } from '../core/preference-order.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Position } from '../core/token.ts'
import type { Clock } from '../ports/clock.ts'
import type {
  Freshness,
  GroupSummary,
  GroupView,
  MapEvent,
  MapVersion,
  MemberView,
  PartitionView,
  PlannedMove,
} from '../ports/group-access.ts'
import { GroupHistory } from './group-history.ts'
import type { Mirror } from './mirror.ts'

export type GroupViewOptions = {
  readonly group: GroupName
  readonly mirror: Mirror
  readonly clock: Clock
  readonly orderOf: PreferenceOrderFactory
  /** What the owner said last over the broadcast of this grant; a hint. */
  readonly isServing: (partition: PartitionId, position: Position) => boolean
  /** Alarms that stand, beyond those that the records show. */
  readonly alarms: () => readonly string[]
}

export class MirroredGroup implements GroupView {
  private readonly options: GroupViewOptions
  private readonly state: GroupState
  private readonly history: GroupHistory
  private readonly unsubscribe: () => void
  private changes = 0

  constructor(options: GroupViewOptions) {
    this.options = options
    this.state = options.mirror.state
    this.history = new GroupHistory(options.mirror, options.clock, (partition) =>
      this.partition(partition),
    )
    this.unsubscribe = options.mirror.subscribe({
      changed: () => {
        this.changes += 1
      },
      rewound: () => {},
    })
  }

  close(): void {
    this.unsubscribe()
    this.history.close()
  }

  edition(): number {
    return this.changes
  }

  isServing(partition: PartitionId): boolean {
    const { state } = this
    const position = state.position(partition)
    if (position === null || state.liveOwner(partition) === null) return false
    return state.phase(partition) !== 'halted' && this.options.isServing(partition, position)
  }

  freshness(): Freshness {
    const { clock, mirror } = this.options
    const { currentAtMs } = mirror
    const sinceMs = currentAtMs ?? Number.NEGATIVE_INFINITY
    const ageMs = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, clock.monotonicMs() - sinceMs))
    const ttlMs = this.state.config?.leaseTtlMs ?? 0
    return { version: this.history.version(), ageMs, stale: ageMs > ttlMs }
  }

  /** `owned` counts partitions with a live owner, those that move included. */
  summary(): GroupSummary {
    const { state } = this
    const counts = { owned: 0, vacant: 0, moving: 0, halted: 0, notServing: 0 }
    let haltedAt = 0
    for (let partition = 0; partition < state.partitions; partition += 1) {
      const phase = state.phase(partition)
      const position = state.position(partition)
      if (phase === 'halted') {
        counts.halted += 1
        haltedAt = Math.max(haltedAt, state.haltedThrough(partition) ?? 0)
      } else if (position === null || state.liveOwner(partition) === null) counts.vacant += 1
      else {
        counts.owned += 1
        if (phase === 'revoking') counts.moving += 1
        if (!this.options.isServing(partition, position)) counts.notServing += 1
      }
    }
    return {
      group: this.options.group,
      partitions: state.partitions,
      ...counts,
      members: state.members.size,
      rebalancer: state.rebalancer?.session ?? null,
      incarnation: state.incarnation ?? 0,
      frozen: state.freeze,
      disabled: state.disabledGroup,
      alarms: [...this.options.alarms(), ...this.haltedAlarm(counts.halted, haltedAt)],
    }
  }

  config(): GroupConfig {
    const { config } = this.state
    if (config !== null) return config
    throw createTenureError('unknown-group', `group ${this.options.group} has no settings`)
  }

  partition(partition: PartitionId): PartitionView {
    const { state } = this
    if (!Number.isInteger(partition) || partition < 0 || partition >= state.partitions) {
      const last = state.partitions - 1
      throw createTenureError('unknown-partition', `partition ${partition} is not 0 to ${last}`)
    }
    const record = state.record(partition)?.record
    const owner = state.liveOwner(partition)
    const disabled = state.isDisabled(partition)
    const why = explainPartition(state, partition)
    if (record === undefined) return { partition, disabled, why, ...NEVER_OWNED }
    const { incarnation, generation, atMs } = record
    return {
      partition,
      disabled,
      why,
      incarnation,
      generation,
      changedAtMs: atMs,
      phase: owner === null && record.phase !== 'halted' ? 'vacant' : record.phase,
      owner:
        owner === null
          ? null
          : {
              member: owner.member,
              session: owner.session,
              address: state.members.get(owner.member)?.address ?? '',
              live: true,
            },
      serving: this.isServing(partition),
      how: owner !== null && 'how' in record ? record.how : null,
      move: owner !== null && record.phase === 'revoking' ? record.move : null,
      previous: owner === null ? lastGrant(record) : record.previous,
    }
  }

  *partitions(): Iterable<PartitionView> {
    for (let partition = 0; partition < this.state.partitions; partition += 1) {
      yield this.partition(partition)
    }
  }

  members(): readonly MemberView[] {
    const { state } = this
    const owned = new Map<MemberName, number>()
    for (let partition = 0; partition < state.partitions; partition += 1) {
      const owner = state.liveOwner(partition)
      if (owner === null || state.phase(partition) === 'halted') continue
      owned.set(owner.member, (owned.get(owner.member) ?? 0) + 1)
    }
    const views = [...state.members.values()].map((record) => ({
      ...record,
      owned: owned.get(record.member) ?? 0,
      cordon: state.cordons.get(record.member) ?? null,
      evicting: state.evictions.has(record.member),
    }))
    return views.sort((a, b) => (a.member < b.member ? -1 : 1))
  }

  /** Newest first. */
  rebalances(): readonly RebalanceRecord[] {
    return [...this.state.rebalances.values()].sort(
      (a, b) => b.requestedAtMs - a.requestedAtMs || (a.id < b.id ? -1 : 1),
    )
  }

  partitionOf(key: string): PartitionId {
    return partitionOf(key, this.config().partitions)
  }

  plan(): readonly PlannedMove[] {
    const { state } = this
    const { moves } = assignGroup(state, this.options.orderOf)
    return moves.filter(({ partition, from }) => {
      const member = state.members.get(from)
      const stands = state.record(partition)?.record
      if (member === undefined || stands?.phase !== 'owned') return false
      // Who leaves gives its partitions up itself.
      return stands.owner.member === from && mayReceive(state, member)
    })
  }

  onChange(listener: (event: MapEvent) => void): () => void {
    return this.history.subscribe(listener)
  }

  eventsSince(version: MapVersion): readonly MapEvent[] | null {
    return this.history.since(version)
  }

  private haltedAlarm(halted: number, incarnation: number): readonly string[] {
    if (halted === 0 || incarnation < (this.state.incarnation ?? 0)) return []
    return [
      `fence-ahead: ${halted} partitions are halted, raise the incarnation above ${incarnation}`,
    ]
  }
}

const NEVER_OWNED = {
  phase: 'vacant',
  ...{ incarnation: 0, generation: 0, changedAtMs: 0 },
  ...{ owner: null, serving: false, how: null, move: null, previous: null },
} as const

/** Of a partition that nobody owns: whose grant was the last. */
function lastGrant(record: PartitionRecord): PreviousOwner | null {
  const owner = recordOwner(record)
  if (owner === null) return record.previous
  const { incarnation, generation } = record
  return { member: owner.member, session: owner.session, incarnation, generation }
}
